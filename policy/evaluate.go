package policy

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Input is what a decision is about. Tool and Agent must be well-formed; an empty
// tool matches no rule.
type Input struct {
	Tool       id.Tool
	Agent      id.Agent
	ActorType  string
	ActionKind string
	Payload    []byte     // canonical JSON object; nil is {}
	Now        id.Instant // recorded as evaluated_at
}

// InputDigest is the input_digest: SHA-256 of the RFC 8785 form of action_kind,
// actor_type, agent_id, payload and tool_name.
func InputDigest(in Input) id.Hash {
	payload := in.Payload
	if payload == nil {
		payload = []byte("{}")
	}
	var buffer [512]byte
	h := sha256.New()
	b := jcs.AppendString(append(buffer[:0], `{"action_kind":`...), in.ActionKind)
	b = jcs.AppendString(append(b, `,"actor_type":`...), in.ActorType)
	b = jcs.AppendString(append(b, `,"agent_id":`...), string(in.Agent))
	h.Write(append(b, `,"payload":`...))
	h.Write(payload)
	b = jcs.AppendString(append(b[:0], `,"tool_name":`...), string(in.Tool))
	h.Write(append(b, '}'))
	return id.Hash(h.Sum(buffer[:0]))
}

// Outcome is a decision and where it comes from. Its slices are shared with the
// policy and must not be changed.
type Outcome struct {
	Decision      id.Decision
	PolicyID      string  // None when no policy is active
	PolicyVersion uint64  // 0 when no policy is active
	PolicyDigest  id.Hash // zero when no policy is active
	RuleID        string  // DefaultRule when no rule matches
	Reason        string  // for humans, never empty
	Engine        string
	Obligations   []Obligation // those of the rule that decided
	Shadow        []string     // ids of the shadow rules that match, in stored order
}

// Effective is what becomes of a declared decision under this outcome: it is
// only ever tightened.
func (o Outcome) Effective(declared id.Decision) id.Decision { return declared.Tighten(o.Decision) }

// NoPolicy is the outcome when it is certain that no policy is active.
func NoPolicy() Outcome {
	return Outcome{
		Decision: id.Allow,
		PolicyID: None,
		RuleID:   None,
		Reason:   "No policy is active.",
		Engine:   Engine,
	}
}

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

// Evaluate decides. It allocates only when a shadow rule matches.
func (c *Compiled) Evaluate(in Input) Outcome {
	if in.Tool == "" {
		return c.fallback
	}
	strongest := len(c.enforcing)
	c.enforced.visit(string(in.Tool), func(rules []int32) {
		for _, i := range rules {
			if int(i) >= strongest {
				return
			}
			if c.enforcing[i].concerns(in.Agent) {
				strongest = int(i)
				return
			}
		}
	})
	o := c.fallback
	if strongest < len(c.enforcing) {
		o = c.enforcing[strongest].outcome
	}
	o.Shadow = c.shadows(in)
	return o
}

// shadows returns the ids of the shadow rules that match.
func (c *Compiled) shadows(in Input) []string {
	if len(c.shadowing) == 0 {
		return nil
	}
	var matching []int32
	c.shadowed.visit(string(in.Tool), func(rules []int32) {
		for _, i := range rules {
			if c.shadowing[i].concerns(in.Agent) {
				matching = append(matching, i)
			}
		}
	})
	slices.Sort(matching)
	var ids []string
	for _, i := range matching {
		ids = append(ids, c.shadowing[i].outcome.RuleID)
	}
	return ids
}
