package policy

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
)

// document is a policy as it is written. Pointers and raw values tell absent
// members, for which there is a default, from wrong ones.
type document struct {
	PolicyID string         `json:"policy_id"`
	Name     string         `json:"name"`
	Version  uint64         `json:"version"`
	Default  *id.Decision   `json:"default"`
	Rules    []ruleDocument `json:"rules"`
	Tests    jsontext.Value `json:"tests"`
}

type ruleDocument struct {
	RuleID      string               `json:"rule_id"`
	Tool        string               `json:"tool"`
	Agents      []id.Agent           `json:"agents"`
	When        jsontext.Value       `json:"when"`
	Requires    jsontext.Value       `json:"requires"`
	Decision    id.Decision          `json:"decision"`
	Reason      string               `json:"reason"`
	Priority    int                  `json:"priority"`
	Obligations []obligationDocument `json:"obligations"`
	Mode        *string              `json:"mode"`
	OnError     jsontext.Value       `json:"on_error"`
	Limit       jsontext.Value       `json:"limit"`
}

type obligationDocument struct {
	Type       string `json:"type"`
	Approvals  *int   `json:"approvals"`
	TTLSeconds *int   `json:"ttl_seconds"`
}

// Parse reads a policy document: one JSON object with the members policy_id,
// name, version, default and rules, all strict I-JSON. `policy_id` and `version`
// may be absent, since they are given by who stores the policy; `default` is then
// allow. A member that is null counts as absent.
//
// Errors are *fault.Error of kind Invalid or TooLarge that name the member.
func Parse(doc []byte) (Policy, error) {
	if len(doc) > MaxBytes {
		return Policy{}, fault.New(fault.TooLarge, "The policy is larger than 1 MiB")
	}
	var d document
	if err := json.Unmarshal(doc, &d, json.RejectUnknownMembers(true)); err != nil {
		return Policy{}, decodeError(err)
	}
	p, err := d.policy()
	if err != nil {
		return Policy{}, err
	}
	if p.ID != "" && (!validID(p.ID) || reserved(p.ID)) || p.Version >= 1<<53 {
		return Policy{}, p.checkIdentity()
	}
	if err := p.checkContent(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func (d *document) policy() (Policy, error) {
	if !absent(d.Tests, "[]") {
		return Policy{}, notSupported("tests")
	}
	p := Policy{ID: d.PolicyID, Name: d.Name, Version: d.Version, Default: id.Allow}
	if d.Default != nil {
		p.Default = *d.Default
	}
	p.Rules = make([]Rule, len(d.Rules))
	for i := range d.Rules {
		r, err := d.Rules[i].rule(i)
		if err != nil {
			return Policy{}, err
		}
		p.Rules[i] = r
	}
	return p, nil
}

// rule fills in the defaults of the rule at i. Its grammar is checked later.
func (d *ruleDocument) rule(i int) (Rule, error) {
	r := Rule{
		ID:       d.RuleID,
		Tool:     d.Tool,
		Agents:   d.Agents,
		Decision: d.Decision,
		Reason:   d.Reason,
		Priority: d.Priority,
		Mode:     parseMode(d.Mode),
	}
	for _, o := range d.Obligations {
		r.Obligations = append(r.Obligations, o.obligation())
	}
	for _, m := range []struct {
		name, empty string
		value       jsontext.Value
	}{
		{"when", "null", d.When},
		{"requires", "[]", d.Requires},
		{"on_error", strconv.Quote(r.onError()), d.OnError},
		{"limit", "null", d.Limit},
	} {
		if !absent(m.value, m.empty) {
			return Rule{}, notSupported(ruleMember(i, m.name))
		}
	}
	return r, nil
}

func (d *obligationDocument) obligation() Obligation {
	o := Obligation{Type: d.Type, Approvals: DefaultApprovals, TTLSeconds: DefaultTTLSeconds}
	if d.Approvals != nil {
		o.Approvals = *d.Approvals
	}
	if d.TTLSeconds != nil {
		o.TTLSeconds = *d.TTLSeconds
	}
	return o
}

// parseMode returns the zero Mode for unknown text.
func parseMode(s *string) Mode {
	switch {
	case s == nil || *s == Enforce.String():
		return Enforce
	case *s == Shadow.String():
		return Shadow
	}
	return 0
}

// absent reports whether a member was left out, is null, or has the one value
// that says the same as leaving it out.
func absent(v jsontext.Value, empty string) bool {
	if v == nil {
		return true
	}
	v = bytes.Clone(v)
	return v.Compact() == nil && (string(v) == "null" || string(v) == empty)
}
