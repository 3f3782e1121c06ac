package policy

import (
	"cmp"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"

	"github.com/agentledger/agentledger/id"
)

// Compiled is a policy ready to decide. It is immutable and safe for concurrent
// use.
//
// Enforcing rules are numbered by how strongly they decide: by priority, then
// strictness, then stored order. The smallest number that matches has the word.
type Compiled struct {
	fallback  Outcome
	enforcing []target
	shadowing []target // in stored order
	enforced  index    // those of enforcing without a limit
	limited   index    // those of enforcing with one
	shadowed  index    // all of shadowing
	digest    id.Hash
	weight    int
}

// target is what is left of a rule: whom it is about, when, and what it says.
type target struct {
	agents   map[id.Agent]struct{} // nil for every agent
	requires []path
	when     *condition // nil: always
	limit    *Limit
	sum      path // of limit
	onError  OnError
	outcome  Outcome // what it says
	failed   string  // begins the reason for a rule error
}

func (t *target) concerns(agent id.Agent) bool {
	if t.agents == nil {
		return true
	}
	_, ok := t.agents[agent]
	return ok
}

// plain reports whether the rule matches whatever it concerns.
func (t *target) plain() bool { return t.when == nil && len(t.requires) == 0 && t.limit == nil }

// Compile checks all of a policy, its id and version too, and prepares it.
// Errors are *fault.Error of kind Invalid that name the member.
func Compile(p Policy) (*Compiled, error) {
	if err := p.checkIdentity(); err != nil {
		return nil, err
	}
	if err := p.checkContent(); err != nil {
		return nil, err
	}
	conditions, err := p.conditions()
	if err != nil {
		return nil, err
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
		weight: p.weight(),
	}
	c.addEnforcing(p.Rules, conditions)
	c.addShadowing(p.Rules, conditions)
	return c, nil
}

// Digest returns the policy_digest of what was compiled.
func (c *Compiled) Digest() id.Hash { return c.digest }

// Weight is about how many bytes the compiled policy takes in memory.
func (c *Compiled) Weight() int { return c.weight }

// weight estimates: a rule without its texts, a condition with the program that
// it becomes, as measured.
func (p *Policy) weight() int {
	sum := 1 << 10
	for i := range p.Rules {
		r := &p.Rules[i]
		sum += 1<<10 + len(r.Reason) + 64*(len(r.Agents)+len(r.Requires))
		if r.When != "" {
			sum += 512 + 32*len(r.When)
		}
	}
	return sum
}

// conditions compiles the conditions of all rules, nil for those without.
func (p *Policy) conditions(options ...cel.ProgramOption) ([]*condition, error) {
	all := make([]*condition, len(p.Rules))
	var env *cel.Env
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.When == "" {
			continue
		}
		if env == nil {
			var err error
			if env, err = newEnvironment(); err != nil {
				return nil, fmt.Errorf("policy: environment of conditions: %w", err)
			}
		}
		c, err := r.condition(env, options...)
		if err != nil {
			return nil, invalid(ruleMember(i, "when"), err.Error())
		}
		all[i] = c
	}
	return all, nil
}

func (r *Rule) condition(env *cel.Env, options ...cel.ProgramOption) (*condition, error) {
	if _, _, err := checkWhen(env, r.When); err != nil {
		return nil, err
	}
	return planWhen(env, r.When, r.required(), options...)
}

// required returns the paths of Requires, which are well-formed.
func (r *Rule) required() []path {
	var all []path
	for _, text := range r.Requires {
		p, _ := parsePath(text)
		all = append(all, p)
	}
	return all
}

func (c *Compiled) addEnforcing(rules []Rule, conditions []*condition) {
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
			c.enforced.add(r.Tool, at)
		} else {
			c.limited.add(r.Tool, at)
		}
		c.enforcing = append(c.enforcing, c.target(r, conditions[i]))
	}
}

func (c *Compiled) addShadowing(rules []Rule, conditions []*condition) {
	for i := range rules {
		if rules[i].Mode == Shadow {
			at := int32(len(c.shadowing))
			c.shadowed.add(rules[i].Tool, at)
			c.shadowing = append(c.shadowing, c.target(&rules[i], conditions[i]))
		}
	}
}

// target prepares a rule.
func (c *Compiled) target(r *Rule, when *condition) target {
	t := target{when: when, requires: r.required(), onError: r.OnError, outcome: c.fallback}
	t.outcome.Decision = r.Decision
	t.outcome.RuleID = r.ID
	t.outcome.Reason = cmp.Or(r.Reason, r.sentence())
	t.outcome.Obligations = slices.Clone(r.Obligations)
	t.failed = "Rule " + r.ID + " could not be evaluated and so says " + r.Decision.String() + ": "
	if r.Limit != nil {
		limit := *r.Limit
		t.limit = &limit
		t.sum, _ = parsePath(limit.Sum)
	}
	if len(r.Agents) > 0 {
		t.agents = make(map[id.Agent]struct{}, len(r.Agents))
	}
	for _, agent := range r.Agents {
		t.agents[agent] = struct{}{}
	}
	return t
}

// sentence is the reason of a rule that gives none.
func (r *Rule) sentence() string {
	if r.Limit != nil {
		return fmt.Sprintf("Rule %s says %s: limit %s is exceeded.", r.ID, r.Decision, r.Limit.ID)
	}
	return fmt.Sprintf("Rule %s says %s.", r.ID, r.Decision)
}
