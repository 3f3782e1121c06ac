// Package policy decides what an agent may do with a tool: the document of an
// organization's policy, its one digest, and a compiled form that answers in
// about a microsecond.
//
// What always holds:
//
//   - Pure: a decision follows from (policy, input) and nothing else. No I/O, no
//     clock, no randomness, so an auditor gets the same answer.
//   - What is accepted is enforced. A member that this package does not know, or
//     does not enforce yet, is refused by Parse, never kept and ignored.
//   - Of all enforcing rules that match, the highest priority counts; inside it
//     deny > allow_with_obligation > allow; among those the first in stored order
//     names the decision. No match: the policy's default.
//   - Shadow rules never change an answer.
//   - Equal digests mean equal policies, with every default written out.
package policy

import "github.com/agentledger/agentledger/id"

// Reserved ids and the engine, as decisions name them.
const (
	None        = "none"    // policy_id and rule_id when no policy is active
	DefaultRule = "default" // rule_id when no rule matches
	Engine      = "rules"
)

// Bounds of a policy document.
const (
	MaxBytes    = 1 << 20 // of the document as sent
	MaxRules    = 500
	MaxPriority = 1_000_000 // and -MaxPriority
	MaxName     = 256       // code points
	MaxReason   = 1024      // code points
	MaxTool     = 256       // bytes of a tool glob
)

// Policy is one version of an organization's policy. A value that Parse returned
// is well-formed but for ID and Version, which may be unset; Compile checks all.
type Policy struct {
	ID      string // [A-Za-z0-9._:-]{1,128}, not none or default
	Name    string
	Version uint64 // from 1, at most 2^53-1
	Default id.Decision
	Rules   []Rule // their order is part of the policy
}

// Rule is one rule of a policy.
//
// Tool is a glob over tool names: segments joined by dots and compared byte by
// byte, of which `*` stands for any one and, as the last, `**` for one or more. A
// star is never part of a segment.
type Rule struct {
	ID          string // as Policy.ID, unique in the policy
	Tool        string
	Agents      []id.Agent // exact ids; empty means every agent
	Decision    id.Decision
	Reason      string // for humans, may be empty
	Priority    int    // larger counts first
	Mode        Mode
	Obligations []Obligation // only with AllowWithObligation
}

// onError is what a rule error does: rules that forbid or oblige count as
// matching, rules that allow do not. It is not open to choice yet, and has its
// place in the digest.
func (r *Rule) onError() string {
	if r.Decision == id.Allow {
		return "skip"
	}
	return "match"
}

// Mode says whether a rule takes part in decisions. The zero value is none.
type Mode uint8

const (
	Enforce Mode = iota + 1
	Shadow       // reported when it matches, without any effect
)

// String returns the wire form, "" for the zero value.
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Shadow:
		return "shadow"
	}
	return ""
}

// HumanApproval is the type of the only obligation there is.
const HumanApproval = "human_approval"

// Bounds and defaults of a human_approval.
const (
	DefaultApprovals  = 1
	MaxApprovals      = 100
	DefaultTTLSeconds = 60 * 60
	MaxTTLSeconds     = 7 * 24 * 60 * 60
)

// Obligation is what has to happen before an action that is allowed with an
// obligation may go ahead. It is told to the caller, in this form.
type Obligation struct {
	Type       string `json:"type"`
	Approvals  int    `json:"approvals"`   // people who have to say yes, 1 to MaxApprovals
	TTLSeconds int    `json:"ttl_seconds"` // life of the request, 1 to MaxTTLSeconds
}
