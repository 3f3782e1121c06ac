package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy/internal/condition"
)

// Compiled is a policy that is ready to decide. It is immutable and safe for concurrent use.
//
// Enforcing rules are numbered by strength: by priority, then strictness, then stored order. The
// matching rule with the smallest number decides.
type Compiled struct {
	fallback  Outcome
	enforcing []target
	shadowing []target // in stored order
	enforced  index    // enforcing rules without a limit
	limited   index    // enforcing rules with a limit
	shadowed  index    // all shadow rules
	digest    id.Hash
	weight    int
}

// target is a rule prepared for evaluation: its agents, its condition and its outcome.
type target struct {
	agents   map[id.Agent]struct{} // nil means every agent
	subject  *Subject              // nil means every event
	requires []condition.Path
	when     *condition.Condition // nil always holds
	limit    *Limit
	sum      condition.Path // of limit
	onError  OnError
	price    uint64  // of checking requires and limit, in units (cost.go)
	outcome  Outcome // the outcome when the rule decides
	failed   string  // prefix of the reason for a rule error
}

func (t *target) concernsSubject(in *Input) bool { return t.subject == nil || t.subject.selects(in) }

// selects reports whether the subject of an input is one of s.
func (s *Subject) selects(in *Input) bool {
	of := in.OnBehalfOf
	return of != nil && (in.Verified || !s.Verified) && (s.Issuer == "" || s.Issuer == of.Issuer) &&
		(s.Subject == "" || s.Subject == of.Subject)
}

func (t *target) concernsAgent(agent id.Agent) bool {
	if t.agents == nil {
		return true
	}
	_, ok := t.agents[agent]
	return ok
}

// matchesAlways reports whether the rule matches every input with its tool, agent and subject.
func (t *target) matchesAlways() bool { return t.when == nil && len(t.requires) == 0 && t.limit == nil }

// Compile checks the whole policy, including its ID and version, and compiles it. Errors are
// *fault.Error of kind Invalid that name the member. The bounds for saving (MaxParts,
// MaxInstructions) do not apply.
func Compile(p Policy) (*Compiled, error) { return CompileWithin(context.Background(), p) }

// CompileWithin is Compile but stops when ctx ends.
func CompileWithin(ctx context.Context, p Policy) (*Compiled, error) {
	return p.compileWith(condition.NewCompiler(ctx))
}

// CompileBounded is CompileWithin for a policy that is about to become active. It also applies the
// bounds for saving, and returns an error of kind Invalid if the policy exceeds them.
func CompileBounded(ctx context.Context, p Policy) (*Compiled, error) {
	return p.compileWith(condition.NewCompiler(ctx).Bounded())
}

func (p Policy) compileWith(compiler *condition.Compiler) (*Compiled, error) {
	if err := p.checkIdentity(); err != nil {
		return nil, err
	}
	if err := p.checkContent(); err != nil {
		return nil, err
	}
	conditions, err := p.compileConditions(compiler)
	if err != nil {
		return nil, err
	}
	if p.usesSubjects(conditions) && !p.Subjects {
		return nil, invalidMember("v", "must be 2, because a rule uses on_behalf_of")
	}
	digest := p.Digest()
	c := &Compiled{
		fallback: Outcome{
			Decision:      p.Default,
			PolicyID:      p.ID,
			PolicyVersion: p.Version,
			PolicyDigest:  digest,
			RuleID:        DefaultRule,
			Reason:        fmt.Sprintf("No rule matches; the policy's default is %s.", p.Default),
			Engine:        Engine,
		},
		digest: digest,
	}
	c.addEnforcingRules(p.Rules, conditions)
	c.addShadowRules(p.Rules, conditions)
	c.weight = c.weighRules() + compiler.Weight()
	return c, nil
}

// compileConditions compiles the conditions of all rules. The result is nil for a rule without a
// condition.
func (p *Policy) compileConditions(compiler *condition.Compiler) ([]*condition.Condition, error) {
	compiled := make([]*condition.Condition, len(p.Rules))
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.When == "" {
			continue
		}
		if err := compiler.Prepare(); err != nil {
			return nil, fmt.Errorf("compile conditions: %w", err)
		}
		made, err := compiler.Compile(r.When, r.requiredPaths())
		if err != nil {
			return nil, invalidMember(ruleMemberPath(i, "when"), err.Error())
		}
		compiled[i] = made
	}
	return compiled, nil
}

// usesSubjects reports whether a rule uses on_behalf_of. conditions are those of the rules.
func (p *Policy) usesSubjects(conditions []*condition.Condition) bool {
	for i := range p.Rules {
		if p.Rules[i].OnBehalfOf != nil || conditions[i] != nil && conditions[i].ReadsSubject() {
			return true
		}
	}
	return false
}

// Digest returns the policy_digest of the compiled policy.
func (c *Compiled) Digest() id.Hash { return c.digest }

// requiredPaths returns the paths of Requires, which must be well-formed.
func (r *Rule) requiredPaths() []condition.Path {
	var all []condition.Path
	for _, text := range r.Requires {
		p, _ := condition.ParsePath(text)
		all = append(all, p)
	}
	return all
}

func (c *Compiled) addEnforcingRules(rules []Rule, conditions []*condition.Condition) {
	var places []int
	for i := range rules {
		if rules[i].Mode == Enforce {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(i, j int) int {
		a, b := &rules[i], &rules[j]
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Decision, a.Decision))
	})
	for _, i := range places {
		r, at := &rules[i], int32(len(c.enforcing))
		if r.Limit == nil {
			c.enforced.insertGlob(r.Tool, at)
		} else {
			c.limited.insertGlob(r.Tool, at)
		}
		c.enforcing = append(c.enforcing, c.prepareRule(r, conditions[i]))
	}
}

func (c *Compiled) addShadowRules(rules []Rule, conditions []*condition.Condition) {
	for i := range rules {
		if rules[i].Mode == Shadow {
			at := int32(len(c.shadowing))
			c.shadowed.insertGlob(rules[i].Tool, at)
			c.shadowing = append(c.shadowing, c.prepareRule(&rules[i], conditions[i]))
		}
	}
}

// prepareRule prepares a rule.
func (c *Compiled) prepareRule(r *Rule, when *condition.Condition) target {
	t := target{when: when, requires: r.requiredPaths(), onError: r.OnError, outcome: c.fallback}
	if r.OnBehalfOf != nil {
		subject := *r.OnBehalfOf
		t.subject = &subject
	}
	t.outcome.Decision = r.Decision
	t.outcome.RuleID = r.ID
	t.outcome.Reason = cmp.Or(r.Reason, r.defaultReason())
	t.outcome.Obligations = slices.Clone(r.Obligations)
	t.failed = "Rule " + r.ID + " could not be evaluated and so says " + r.Decision.String() + ": "
	if r.Limit != nil {
		limit := *r.Limit
		t.limit = &limit
		t.sum, _ = condition.ParsePath(limit.Sum)
	}
	if len(r.Agents) > 0 {
		t.agents = make(map[id.Agent]struct{}, len(r.Agents))
	}
	for _, agent := range r.Agents {
		t.agents[agent] = struct{}{}
	}
	t.price = t.stepPrice()
	return t
}

// stepsPerUnit is how many path steps cost one unit.
const stepsPerUnit = 4

// stepPrice returns the price of the look-ups for the rule's requires and limit. The currency of an
// amount is looked up in each object around it, twice.
func (t *target) stepPrice() uint64 {
	steps := len(t.sum) * len(t.sum)
	for _, p := range t.requires {
		steps += len(p)
	}
	return 1 + uint64(steps/stepsPerUnit)
}

// defaultReason returns the reason for a rule that does not give one.
func (r *Rule) defaultReason() string {
	if r.Limit != nil {
		return fmt.Sprintf("Rule %s says %s: limit %s is exceeded.", r.ID, r.Decision, r.Limit.ID)
	}
	return reasonOf(r.ID, r.Decision)
}

func reasonOf(rule string, d id.Decision) string { return fmt.Sprintf("Rule %s says %s.", rule, d) }

// WrittenReason returns the reason for which a rule requires an approval, as the author of the policy wrote it, or "" if the author wrote none.
func WrittenReason(rule, reason string) string {
	if reason == reasonOf(rule, id.AllowWithObligation) {
		return ""
	}
	return reason
}
