package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// difference is one member or rule in which a document differs from a version.
type difference struct {
	Policy string `json:"policy_id"`
	Member string `json:"member"` // name, default, tests, or rule and the rule's id
	Change string `json:"change"` // added, removed or changed
}

// compareDocuments returns the differences between a version of a policy and a document as the service would store it, so
// neither lacks a default.
func compareDocuments(v *policyVersion, checked jsontext.Value) ([]difference, error) {
	var written policyVersion
	if err := json.Unmarshal(checked, &written); err != nil {
		return nil, fmt.Errorf("read the checked document: %w", err)
	}
	var found []difference
	note := func(member, change string) { found = append(found, difference{v.PolicyID, member, change}) }
	if written.Name != v.Name {
		note("name", "changed")
	}
	if written.Default != v.Default {
		note("default", "changed")
	}
	var before, after []jsontext.Value
	if err := errors.Join(json.Unmarshal(v.Rules, &before), json.Unmarshal(written.Rules, &after)); err != nil {
		return nil, fmt.Errorf("read the rules of version %d: %w", v.Version, err)
	}
	compareRules(before, after, note)
	if !bytes.Equal(written.Tests, v.Tests) {
		note("tests", "changed")
	}
	return found, nil
}

// compareRules records the rules that are in only one list and those that differ. Order matters among rules of one
// priority, so a different order is a change too.
func compareRules(stored, written []jsontext.Value, note func(member, change string)) {
	before, order := rulesByID(stored)
	after, newOrder := rulesByID(written)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			note("rule "+name, "removed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		rule, there := before[name]
		switch {
		case !there:
			note("rule "+name, "added")
		case !bytes.Equal(rule, after[name]):
			note("rule "+name, "changed")
		}
	}
	if len(order) == len(newOrder) && len(before) == len(after) && !slices.Equal(order, newOrder) {
		note("order of rules", "changed")
	}
}

func rulesByID(rules []jsontext.Value) (byID map[string]jsontext.Value, order []string) {
	byID = make(map[string]jsontext.Value, len(rules))
	for _, rule := range rules {
		var named struct {
			ID string `json:"rule_id"`
		}
		_ = json.Unmarshal(rule, &named) // a rule without an id is compared under ""
		byID[named.ID] = rule
		order = append(order, named.ID)
	}
	return byID, order
}

// versionMembers returns the names of the members that the console adds to a version.
func versionMembers() []string {
	return []string{"version", "state", "policy_digest", "written_at", "written_by", "activated_at", "archived_at"}
}

// withMember returns a JSON object with a member set.
func withMember(text []byte, name string, value any) ([]byte, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	members[name] = encoded
	return json.Marshal(members, json.Deterministic(true))
}

// withoutVersion returns a document without the members that the console adds, so that it can be sent as a new policy.
// The document may be a saved response of the console.
func withoutVersion(d document) ([]byte, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(d.text, &members); err != nil {
		return nil, err
	}
	for _, name := range versionMembers() {
		delete(members, name)
	}
	return json.Marshal(members, json.Deterministic(true))
}

// patchOf returns a document as a patch of its policy: without the members that name the policy and a version, and with
// null for missing members, because a patch would keep them.
func patchOf(d document) ([]byte, error) {
	text, err := withoutVersion(d)
	var members map[string]jsontext.Value
	if err = errors.Join(err, json.Unmarshal(text, &members)); err != nil {
		return nil, err
	}
	delete(members, "policy_id")
	for _, name := range []string{"default", "tests"} {
		if _, there := members[name]; !there {
			members[name] = jsontext.Value("null")
		}
	}
	return json.Marshal(members, json.Deterministic(true))
}

type policyDiffCommand struct{ policyFiles }

// ErrFound means that documents differ from the latest versions, or can't be activated. The findings were printed.
var ErrFound = errors.New("documents differ from the latest versions, or can't be activated")

// Run implements the command.
func (c *policyDiffCommand) Run(ctx context.Context, t *Terminal) error {
	differs := false
	table := commandline.NewTable(t.Out, "POLICY", "MEMBER", "CHANGE")
	err := c.forEachDocument(ctx, t, func(s *session, d document) error {
		checked, err := s.checkDocument(ctx, d)
		if err != nil {
			return err
		}
		if checked.Problem != "" {
			return &Refusal{Status: http.StatusUnprocessableEntity, Message: checked.Problem}
		}
		v, err := s.readVersion(ctx, d.policy, 0)
		if err != nil {
			return err
		}
		all := []difference{{d.policy, "policy", "added"}}
		if v != nil {
			if all, err = compareDocuments(v, checked.Document); err != nil {
				return err
			}
		}
		for _, one := range all {
			differs = true
			if err := one.print(t, table); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && differs {
		err = ErrFound
	}
	return err
}

func (d difference) print(t *Terminal, table *commandline.Table) error {
	if t.JSON {
		return t.PrintJSON(d)
	}
	return table.PrintRow("%s  %s  %s", textcheck.Printable(d.Policy), textcheck.Printable(d.Member), d.Change)
}
