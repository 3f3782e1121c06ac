// Package policy decides whether an agent may use a tool: the document of an organization's policy,
// its one digest, and a compiled form that decides in a few microseconds. docs/guides/policies.md explains
// the model.
//
// Invariants:
//
//   - Pure: a decision depends only on the policy, the input, the time and the counters of limits.
//     There is no I/O, no clock, no randomness and no time zone database, so an auditor gets the
//     same decision.
//   - Every accepted member is enforced. Parse rejects members that this package does not know; it
//     never stores and ignores one.
//   - Of all matching enforcing rules, the highest priority counts; within a priority deny >
//     allow_with_obligation > allow; among equals the first in stored order decides. If no rule
//     matches, the policy's default decides.
//   - A rule that cannot be evaluated (a rule error) never weakens a decision: a rule that denies
//     or obliges matches, and a rule that allows does not. &&, || and comparisons of different
//     types never hide an error.
//   - A rule with a limit matches only if the limit is exceeded. Claim (claim.go) compares; package
//     log stores the sums (log/slidingsums.go), and internal/tenant/policystore joins the two.
//   - Shadow rules never change a decision.
//   - The cost of one evaluation is bounded for every policy and payload.
//   - Equal digests mean equal policies, with every default written out.
//
// The package is stable in the sense of README, section Stability.
package policy

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy/internal/condition"
)

// Reserved IDs and the engine, as used in decisions.
const (
	None        = "none"    // policy_id and rule_id if no policy is active
	DefaultRule = "default" // rule_id if no rule matches
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

// Costs of a policy, in units. They are part of a policy's meaning. docs/api.md lists the prices.
const (
	MaxCost         = condition.MaxCost         // of one condition of one evaluation
	MaxTotalCost    = condition.MaxTotalCost    // of one evaluation, in the order in which rules are tried
	MaxTestCost     = 10 * MaxTotalCost         // of all tests of a policy together
	MaxMatched      = condition.MaxMatched      // bytes of a text that is matched against a pattern
	MaxConverted    = condition.MaxConverted    // bytes of a text that is converted to a number or a time
	MaxParts        = condition.MaxParts        // of all distinct conditions of a policy; limits saving
	MaxInstructions = condition.MaxInstructions // of all distinct patterns of a policy; limits saving
)

// Policy is one version of an organization's policy. A value that Parse returned is well-formed
// except for ID and Version, which may be unset. Compile checks everything.
type Policy struct {
	ID      string // [A-Za-z0-9._:-]{1,128}, not none or default
	Name    string
	Version uint64 // from 1, at most 2^53-1
	Default id.Decision
	Rules   []Rule // the order is significant
	// Subjects reports whether a rule uses on_behalf_of. The document then has "v":2. Parse sets it.
	Subjects bool
	Tests    []Test // must pass before activation; not part of the digest
}

// Rule is one rule of a policy.
//
// Tool is a glob over tool names: segments joined by dots and compared byte by byte. The segment
// `*` matches any one segment, and `**`, allowed only at the end, matches one or more. A star is
// never part of a longer segment.
type Rule struct {
	ID          string // as Policy.ID, unique in the policy
	Tool        string
	Agents      []id.Agent // exact IDs; empty means every agent
	OnBehalfOf  *Subject   // nil means every event
	When        string     // a condition in CEL; "" always holds
	Requires    []string   // payload paths that must be present and not null
	Decision    id.Decision
	Reason      string // for humans, may be empty
	Priority    int    // larger counts first
	Mode        Mode
	OnError     OnError
	Obligations []Obligation // only with AllowWithObligation
	Limit       *Limit       // may be nil; not allowed with Allow
}

// Subject selects events by on whose behalf the agent acts. At least one member is set. An event without on_behalf_of has no
// subject and is never selected.
type Subject struct {
	Issuer   string // "" means every issuer
	Subject  string // "" means every subject; needs Issuer
	Verified bool   // only subjects that the service verified
}

// OnError is the effect of a rule error. The zero value is no effect.
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

// defaultOnError returns the default of on_error for a rule with that decision.
func defaultOnError(d id.Decision) OnError {
	if d == id.Allow {
		return SkipOnError
	}
	return MatchOnError
}

// Mode is whether a rule takes part in decisions. The zero value is no mode.
type Mode uint8

const (
	Enforce Mode = iota + 1
	Shadow       // reported if it matches, without any effect
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

// HumanApproval is the only type of obligation.
const HumanApproval = "human_approval"

// Bounds and defaults of a human_approval.
const (
	DefaultApprovals  = 1
	MaxApprovals      = 100
	DefaultTTLSeconds = 60 * 60
	MaxTTLSeconds     = 7 * 24 * 60 * 60
)

// Obligation must be fulfilled before an action that is allowed with an obligation may proceed.
// Callers receive it in this form.
type Obligation struct {
	Type       string `json:"type"`
	Approvals  int    `json:"approvals"`       // required approvals, 1 to MaxApprovals
	Signed     bool   `json:"signed,omitzero"` // each approver must sign the vote with a passkey
	TTLSeconds int    `json:"ttl_seconds"`     // lifetime of the request, 1 to MaxTTLSeconds

	// RemindAfterSeconds is when approvers are notified again of a request without a decision, and EscalateAfterSeconds when
	// the members with the role EscalateTo are notified too, who are not before. 1 to TTLSeconds-1; 0 for never.
	RemindAfterSeconds   int    `json:"remind_after_seconds,omitzero"`
	EscalateAfterSeconds int    `json:"escalate_after_seconds,omitzero"`
	EscalateTo           string `json:"escalate_to,omitzero"` // owner, admin or approver; "" if it never escalates
}
