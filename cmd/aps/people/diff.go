package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
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

// compareDocuments returns the differences between the latest version of a policy and a document. The service adds defaults
// for missing members and derives some from others, which do not count as differences.
func compareDocuments(v *policyVersion, d document) ([]difference, error) {
	var written struct {
		Name    string           `json:"name"`
		Default string           `json:"default"`
		Rules   []jsontext.Value `json:"rules"`
		Tests   []jsontext.Value `json:"tests"`
	}
	if err := json.Unmarshal(d.text, &written); err != nil {
		return nil, err
	}
	var found []difference
	note := func(member, change string) { found = append(found, difference{d.policy, member, change}) }
	if written.Name != v.Name {
		note("name", "changed")
	}
	if written.Default != "" && written.Default != v.Default {
		note("default", "changed")
	}
	var rules, tests []jsontext.Value
	if err := errors.Join(json.Unmarshal(v.Rules, &rules), json.Unmarshal(v.Tests, &tests)); err != nil {
		return nil, fmt.Errorf("read version %d: %w", v.Version, err)
	}
	compareRules(rules, written.Rules, note)
	if !slices.EqualFunc(tests, written.Tests, covers) {
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
		case !covers(rule, after[name]):
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

// covers reports whether a stored value is equivalent to a written one. Stored objects may have more members, because the
// service adds defaults.
func covers(stored, written jsontext.Value) bool {
	var s, w any
	if json.Unmarshal(stored, &s) != nil || json.Unmarshal(written, &w) != nil {
		return bytes.Equal(stored, written)
	}
	return coversValue(s, w)
}

func coversValue(stored, written any) bool {
	switch w := written.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		return ok && coversMembers(s, w)
	case []any:
		s, ok := stored.([]any)
		return ok && slices.EqualFunc(s, w, coversValue)
	}
	return stored == written
}

func coversMembers(stored, written map[string]any) bool {
	for name, value := range written {
		if !coversValue(stored[name], value) {
			return false
		}
	}
	for name, value := range stored {
		if _, there := written[name]; !there && !isDefault(name, value) {
			return false
		}
	}
	return true
}

// isDefault reports whether a member is a default that the service adds to a document without it: on_error follows from the
// decision, and requires from the condition.
func isDefault(name string, value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == "" || name == "mode" && v == "enforce" || name == "on_error" ||
			name == "action_kind" && v == "tool_call" || name == "actor_type" && v == "agent" ||
			name == "agent_id" && v == "test-agent"
	case float64:
		return v == 0
	case []any:
		return len(v) == 0 || name == "requires"
	case map[string]any:
		return len(v) == 0
	}
	return false
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
		v, err := s.readVersion(ctx, d.policy, 0)
		if err != nil {
			return err
		}
		all := []difference{{d.policy, "policy", "added"}}
		if v != nil {
			if all, err = compareDocuments(v, d); err != nil {
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
