package policy

import (
	"crypto/sha256"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Input is what a decision is about: Tool and Agent, and what the input_digest
// commits to besides. Tool and Agent must be well-formed; an empty
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
