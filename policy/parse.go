package policy

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy/internal/condition"
)

// document is a policy as written. Pointers and raw values distinguish absent members, which have a
// default, from wrong ones.
type document struct {
	PolicyID string         `json:"policy_id"`
	Name     string         `json:"name"`
	Version  uint64         `json:"version"`
	Default  *id.Decision   `json:"default"`
	Rules    []ruleDocument `json:"rules"`
	V        *int           `json:"v"`
	Tests    []testDocument `json:"tests"`
}

type ruleDocument struct {
	RuleID      string               `json:"rule_id"`
	Tool        string               `json:"tool"`
	Agents      []id.Agent           `json:"agents"`
	OnBehalfOf  *subjectDocument     `json:"on_behalf_of"`
	When        *string              `json:"when"`
	Requires    []string             `json:"requires"`
	Decision    id.Decision          `json:"decision"`
	Reason      string               `json:"reason"`
	Priority    int                  `json:"priority"`
	Obligations []obligationDocument `json:"obligations"`
	Mode        *string              `json:"mode"`
	OnError     *string              `json:"on_error"`
	Limit       *limitDocument       `json:"limit"`
}

type subjectDocument struct {
	Issuer   *string `json:"issuer"`
	Subject  *string `json:"subject"`
	Verified *bool   `json:"verified"`
}

type limitDocument struct {
	LimitID       string         `json:"limit_id"`
	Sum           *string        `json:"sum"`
	Count         bool           `json:"count"`
	By            string         `json:"by"`
	WindowSeconds int64          `json:"window_seconds"`
	Max           jsontext.Value `json:"max"`
	Currency      *string        `json:"currency"`
}

type obligationDocument struct {
	Type       string `json:"type"`
	Approvals  *int   `json:"approvals"`
	Signed     *bool  `json:"signed"`
	TTLSeconds *int   `json:"ttl_seconds"`

	RemindAfterSeconds   *int    `json:"remind_after_seconds"`
	EscalateAfterSeconds *int    `json:"escalate_after_seconds"`
	EscalateTo           *string `json:"escalate_to"`
}

// Parse parses a policy document: one JSON object with the members policy_id, name, version,
// default, rules and tests, all strict I-JSON. `policy_id` and `version` may be absent, because the
// policy store assigns them; `default` is allow if absent. `v` may be absent or 2. A null member counts as absent. The
// returned policy is complete, including the derived `requires` of each rule, and compiles. Use
// RunTests to check whether its tests pass.
//
// Errors are *fault.Error of kind Invalid or TooLarge that name the member.
func Parse(doc []byte) (Policy, error) { return ParseWithin(context.Background(), doc) }

// ParseWithin is Parse but stops when ctx ends.
func ParseWithin(ctx context.Context, doc []byte) (Policy, error) {
	compiler := condition.NewCompiler(ctx).Bounded()
	p, err := parseDocument(doc, compiler)
	if err != nil {
		return Policy{}, err
	}
	conditions, err := p.compileConditions(compiler)
	if err != nil {
		return Policy{}, err
	}
	p.Subjects = p.usesSubjects(conditions)
	return p, nil
}

// ParseStored parses the output of Canonical or Document for a policy that Parse once returned. It
// does not compile conditions again.
func ParseStored(doc []byte) (Policy, error) {
	return parseDocument(doc, condition.NewCompiler(context.Background()))
}

// parseDocument is Parse without compiling conditions. c inspects conditions whose `requires` must
// be derived.
func parseDocument(doc []byte, c *condition.Compiler) (Policy, error) {
	if len(doc) > MaxBytes {
		return Policy{}, fault.New(fault.TooLarge, "The policy is larger than 1 MiB")
	}
	var d document
	if err := json.Unmarshal(doc, &d, json.RejectUnknownMembers(true)); err != nil {
		return Policy{}, explainDecodeError(err)
	}
	p, err := d.toPolicy()
	if err != nil {
		return Policy{}, err
	}
	if p.ID != "" && (!isValidID(p.ID) || isReservedID(p.ID)) || p.Version >= 1<<53 {
		return Policy{}, p.checkIdentity()
	}
	if err := p.checkContent(); err != nil {
		return Policy{}, err
	}
	if err := d.deriveRequires(&p, c); err != nil {
		return Policy{}, err
	}
	return p, p.checkTests()
}

func (d *document) toPolicy() (Policy, error) {
	p := Policy{ID: d.PolicyID, Name: d.Name, Version: d.Version, Default: id.Allow, Subjects: d.V != nil}
	if d.V != nil && *d.V != documentSubjects {
		return Policy{}, invalidMember("v", "must be 2 or absent")
	}
	if d.Default != nil {
		p.Default = *d.Default
	}
	p.Rules = make([]Rule, len(d.Rules))
	for i := range d.Rules {
		r, err := d.Rules[i].toRule(i)
		if err != nil {
			return Policy{}, err
		}
		p.Rules[i] = r
	}
	for i := range d.Tests {
		t, err := d.Tests[i].toTest(i)
		if err != nil {
			return Policy{}, err
		}
		p.Tests = append(p.Tests, t)
	}
	return p, nil
}

// toRule fills in the defaults of the rule at i. The grammar is checked later.
func (d *ruleDocument) toRule(i int) (Rule, error) {
	r := Rule{
		ID:       d.RuleID,
		Tool:     d.Tool,
		Agents:   d.Agents,
		Decision: d.Decision,
		Reason:   d.Reason,
		Priority: d.Priority,
		Mode:     parseRuleMode(d.Mode),
		OnError:  parseOnError(d.OnError, d.Decision),
	}
	if d.When != nil {
		if r.When = *d.When; r.When == "" {
			return Rule{}, invalidMember(ruleMemberPath(i, "when"), "must not be empty: leave it out")
		}
	}
	if d.OnBehalfOf != nil {
		of, err := d.OnBehalfOf.toSubject(i)
		if err != nil {
			return Rule{}, err
		}
		r.OnBehalfOf = of
	}
	for _, text := range d.Requires {
		r.Requires = append(r.Requires, canonicalPathText(text))
	}
	for _, o := range d.Obligations {
		r.Obligations = append(r.Obligations, o.toObligation())
	}
	var err error
	if d.Limit != nil {
		r.Limit, err = d.Limit.toLimit(i)
	}
	return r, err
}

// toSubject returns the subject of the rule at i. It rejects verified: false, because a rule that gives more to a claimed subject than
// to a verified one is a mistake.
func (d *subjectDocument) toSubject(i int) (*Subject, error) {
	var s Subject
	for _, text := range []struct {
		name string
		from *string
		to   *string
	}{{"issuer", d.Issuer, &s.Issuer}, {"subject", d.Subject, &s.Subject}} {
		if text.from == nil {
			continue
		}
		if *text.to = *text.from; *text.to == "" {
			return nil, invalidMember(ruleMemberPath(i, "on_behalf_of."+text.name), "must not be empty: leave it out")
		}
	}
	if d.Verified != nil {
		if s.Verified = *d.Verified; !s.Verified {
			return nil, invalidMember(ruleMemberPath(i, "on_behalf_of.verified"), "must be true: leave it out")
		}
	}
	return &s, nil
}

// deriveRequires sets the requirements of rules that have none to those of their conditions.
func (d *document) deriveRequires(p *Policy, c *condition.Compiler) error {
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.When == "" || d.Rules[i].Requires != nil {
			continue
		}
		if err := c.Prepare(); err != nil {
			return fmt.Errorf("derive requires: %w", err)
		}
		if err := r.deriveRequires(c, i); err != nil {
			return err
		}
	}
	return nil
}

// deriveRequires sets Requires to the paths that the condition of the rule at i reads outside
// has().
func (r *Rule) deriveRequires(c *condition.Compiler, i int) error {
	seen, err := c.Inspect(r.When)
	if err != nil {
		return invalidMember(ruleMemberPath(i, "when"), err.Error())
	}
	if seen.Computed() {
		return invalidMember(ruleMemberPath(i, "when"),
			"looks up a member of the payload by a computed name: say in requires what must be present")
	}
	for _, p := range seen.Paths() {
		r.Requires = append(r.Requires, p.String())
	}
	return r.checkRequires(i)
}

func (d *limitDocument) toLimit(i int) (*Limit, error) {
	l := &Limit{ID: d.LimitID, Count: d.Count, By: parseLimitScope(d.By), WindowSeconds: d.WindowSeconds}
	if d.Sum != nil {
		l.Sum = canonicalPathText(*d.Sum)
	}
	if d.Currency != nil {
		l.Currency = *d.Currency
	}
	var ok bool
	if l.Max, ok = parseDecimal(d.Max); !ok {
		return nil, invalidMember(ruleMemberPath(i, "limit.max"),
			`must be a number, or a string of digits such as "1000.50", below 10^20 and with at most 18 decimals`)
	}
	return l, nil
}

// canonicalPathText returns the text of a path in the policy's canonical form. It returns a text
// that is not a path unchanged.
func canonicalPathText(s string) string {
	if p, ok := condition.ParsePath(s); ok {
		return p.String()
	}
	return s
}

// parseDecimal parses a JSON number or a string of digits.
func parseDecimal(raw jsontext.Value) (decimal.Decimal, bool) {
	canonical, err := jcs.Canonicalize(raw, 1)
	if err != nil {
		return decimal.Decimal{}, false
	}
	d, err := condition.ParseDecimal(canonical)
	return d, err == nil
}

// positive returns a number that must be positive if it is given: 0 if it is absent, and a negative one instead of 0.
func positive(n *int) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	return *n
}

func (d *obligationDocument) toObligation() Obligation {
	o := Obligation{Type: d.Type, Approvals: DefaultApprovals, TTLSeconds: DefaultTTLSeconds}
	if d.Approvals != nil {
		o.Approvals = *d.Approvals
	}
	if d.Signed != nil {
		o.Signed = *d.Signed
	}
	if d.TTLSeconds != nil {
		o.TTLSeconds = *d.TTLSeconds
	}
	o.RemindAfterSeconds, o.EscalateAfterSeconds = positive(d.RemindAfterSeconds), positive(d.EscalateAfterSeconds)
	if d.EscalateTo != nil {
		o.EscalateTo = *d.EscalateTo
	}
	return o
}

// parseRuleMode returns the zero Mode for an unknown text.
func parseRuleMode(s *string) Mode {
	switch {
	case s == nil || *s == Enforce.String():
		return Enforce
	case *s == Shadow.String():
		return Shadow
	}
	return 0
}

// parseOnError returns the zero OnError for an unknown text.
func parseOnError(s *string, d id.Decision) OnError {
	if s == nil {
		return defaultOnError(d)
	}
	for _, o := range []OnError{MatchOnError, SkipOnError} {
		if o.String() == *s {
			return o
		}
	}
	return 0
}
