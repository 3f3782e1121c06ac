// Package policy decides whether an agent may use a tool: the document of an organization's policy,
// its one digest, and a compiled form that answers in a few microseconds. docs/policies teaches the
// model.
//
// Invariants:
//
//   - Pure: a decision follows from (policy, input, now, counters of limits) and nothing else.
//     There is no I/O, clock, randomness or data base of time zones, so an auditor gets the same
//     answer.
//   - An accepted member is enforced. Parse refuses a member that this package does not know; it
//     never keeps and ignores one.
//   - Of all enforcing rules that match, the highest priority counts; within a priority deny >
//     allow_with_obligation > allow; among those the first in stored order names the decision.
//     Without a match the policy's default decides.
//   - A rule that cannot be evaluated (a rule error) never weakens a decision: it matches when it
//     forbids or obliges, and an allow is not given. Neither && nor || nor a comparison of
//     different types hides an error.
//   - A rule with a limit matches only beyond the limit. Claim (claim.go) compares; package log keeps the sums
//     (log/limits.go), and internal/tenant/policystore joins the two.
//   - Shadow rules never change an answer.
//   - The cost of one evaluation is bounded for every policy and payload.
//   - Equal digests mean equal policies, with every default written out.
//
// The package is stable in the sense of README, section Stability.
package policy

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy/internal/condition"
)

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
	MaxPriority = 1_000_000           // and -MaxPriority
	MaxName     = 256                 // code points
	MaxReason   = 1024                // code points
	MaxTool     = condition.MaxTool   // bytes of a tool glob
	MaxWhen     = condition.MaxSource // bytes of a condition
	MaxRequires = 64                  // paths of a rule
	MaxAgents   = 1000                // of a rule
)

// Costs of a policy, in units. They are part of a policy's meaning. docs/policies has the prices.
const (
	MaxCost         = condition.MaxCost         // of one condition of one evaluation
	MaxTotalCost    = condition.MaxTotalCost    // of one evaluation, in the order in which rules are tried
	MaxTestCost     = 10 * MaxTotalCost         // of all tests of a policy together
	MaxMatched      = condition.MaxMatched      // bytes of a text that is matched with a pattern
	MaxConverted    = condition.MaxConverted    // bytes of a text that is converted to a number or a time
	MaxParts        = condition.MaxParts        // of all different conditions of a policy together; bounds saving
	MaxInstructions = condition.MaxInstructions // of all different patterns of a policy together; bounds saving
)

// Policy is one version of an organization's policy. A value that Parse returned
// is well-formed but for ID and Version, which may be unset; Compile checks all.
type Policy struct {
	ID      string // [A-Za-z0-9._:-]{1,128}, not none or default
	Name    string
	Version uint64 // from 1, at most 2^53-1
	Default id.Decision
	Rules   []Rule // their order is part of the policy
	Tests   []Test // have to pass before activation; not part of the digest
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
	When        string     // a condition in CEL; "" always holds
	Requires    []string   // paths in the payload that must be present and not null
	Decision    id.Decision
	Reason      string // for humans, may be empty
	Priority    int    // larger counts first
	Mode        Mode
	OnError     OnError
	Obligations []Obligation // only with AllowWithObligation
	Limit       *Limit       // nil for none; not with Allow
}

// OnError is the effect of a rule error. The zero value is none.
type OnError uint8

const (
	MatchOnError OnError = iota + 1 // the rule counts as matching, also below its limit: rules that forbid or oblige
	SkipOnError                     // the rule does not match: rules that allow
)

// String returns the wire form, "" for the zero value.
func (o OnError) String() string {
	switch o {
	case MatchOnError:
		return "match"
	case SkipOnError:
		return "skip"
	}
	return ""
}

// defaultOnError is the default of on_error for a rule with that decision.
func defaultOnError(d id.Decision) OnError {
	if d == id.Allow {
		return SkipOnError
	}
	return MatchOnError
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

// Obligation is a duty that has to be fulfilled before an action that is allowed with an obligation
// may go ahead. Callers receive it in this form.
type Obligation struct {
	Type       string `json:"type"`
	Approvals  int    `json:"approvals"`       // people who have to say yes, 1 to MaxApprovals
	Signed     bool   `json:"signed,omitzero"` // each of them signs the vote by a passkey
	TTLSeconds int    `json:"ttl_seconds"`     // life of the request, 1 to MaxTTLSeconds
}
