package policy

import (
	"cmp"
	"fmt"
	"slices"

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
	enforced  index    // positions in enforcing
	shadowed  index    // positions in shadowing
}

// target is what is left of a rule: whom it is about and what it says.
type target struct {
	agents  map[id.Agent]struct{} // nil for every agent
	outcome Outcome
}

func (t *target) concerns(agent id.Agent) bool {
	if t.agents == nil {
		return true
	}
	_, ok := t.agents[agent]
	return ok
}

// Compile checks all of a policy, its id and version too, and prepares it.
// Errors are *fault.Error of kind Invalid that name the member.
func Compile(p Policy) (*Compiled, error) {
	if err := p.checkIdentity(); err != nil {
		return nil, err
	}
	if err := p.checkContent(); err != nil {
		return nil, err
	}
	c := &Compiled{fallback: Outcome{
		Decision:      p.Default,
		PolicyID:      p.ID,
		PolicyVersion: p.Version,
		PolicyDigest:  p.Digest(),
		RuleID:        DefaultRule,
		Reason:        fmt.Sprintf("No rule matches; the policy's default is %s.", p.Default),
		Engine:        Engine,
	}}
	c.addEnforcing(p.Rules)
	c.addShadowing(p.Rules)
	return c, nil
}

func (c *Compiled) addEnforcing(all []Rule) {
	rules := slices.DeleteFunc(slices.Clone(all), func(r Rule) bool { return r.Mode != Enforce })
	slices.SortStableFunc(rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Decision, a.Decision))
	})
	for i := range rules {
		c.enforced.add(rules[i].Tool, int32(i))
		c.enforcing = append(c.enforcing, c.target(&rules[i]))
	}
}

func (c *Compiled) addShadowing(all []Rule) {
	for i := range all {
		if all[i].Mode == Shadow {
			c.shadowed.add(all[i].Tool, int32(len(c.shadowing)))
			c.shadowing = append(c.shadowing, c.target(&all[i]))
		}
	}
}

func (c *Compiled) target(r *Rule) target {
	t := target{outcome: c.fallback}
	t.outcome.Decision = r.Decision
	t.outcome.RuleID = r.ID
	t.outcome.Reason = cmp.Or(r.Reason, fmt.Sprintf("Rule %s says %s.", r.ID, r.Decision))
	t.outcome.Obligations = slices.Clone(r.Obligations)
	if len(r.Agents) > 0 {
		t.agents = make(map[id.Agent]struct{}, len(r.Agents))
	}
	for _, agent := range r.Agents {
		t.agents[agent] = struct{}{}
	}
	return t
}
