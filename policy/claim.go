package policy

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Claim is the amount that one event adds to one limit. The rule with the limit concerns the event
// in all other respects (tool, agents, requires, when), so it matches when before + Added > Max.
// Before is the amount that the counter holds for the window.
//
// A counter holds the sum of the claims of its events. Events of every kind count if their effective
// decision is not deny, with all limits decided and the declared decision tightened. For example, an
// event that is refused adds nothing, and one that needs an approval adds. An event adds to every
// limit that it claims, also when another rule decides, and to the limits of shadow rules.
type Claim struct {
	Limit  *Limit // shared with the policy, not to be changed
	RuleID string
	Shadow bool   // reported when exceeded, without any effect
	Key    string // whom it is counted for: a tool name, an agent id, or "" by organization
	Added  decimal.Decimal

	place    int32    // among the enforcing rules, or among the shadow rules
	exceeded *Outcome // the rule's outcome, nil for a shadow rule
}

// Exceeds reports whether the rule matches when the counter is at before. A sum
// that has no room is one.
func (c *Claim) Exceeds(before decimal.Decimal) bool {
	after, err := before.Add(c.Added)
	return err != nil || after.Cmp(c.Limit.Max) > 0
}

// Counter names the counter of the claim within an organization: SHA-256 of the JCS of {by, count,
// currency, key, limit_id, sum}. A counter goes on when another version of a policy, or another
// policy, has the same limit. It begins anew when the limit counts something else.
func (c *Claim) Counter() id.Hash {
	l := c.Limit
	b := jcs.AppendString([]byte(`{"by":`), l.By.String())
	b = strconv.AppendBool(append(b, `,"count":`...), l.Count)
	b = appendOrNull(append(b, `,"currency":`...), l.Currency)
	b = jcs.AppendString(append(b, `,"key":`...), c.Key)
	b = jcs.AppendString(append(b, `,"limit_id":`...), l.ID)
	b = appendOrNull(append(b, `,"sum":`...), l.Sum)
	return sha256.Sum256(append(b, '}'))
}

// Evaluation is a decision for which only limits are open. It can be settled any
// number of times.
type Evaluation struct {
	Claims []Claim // claims on limits, shadow rules included; not to be changed

	outcome Outcome // when no limit is exceeded
	place   int32   // of the enforcing rule that it is the word of
	shadows []shadow
}

// Settle returns the outcome, given the claims that exceed their limits. Rules without a limit and
// rules whose limit is exceeded are combined as the package comment says. A nil exceeds stands for
// "all do": a caller that cannot read counters passes nil.
func (e *Evaluation) Settle(exceeds func(*Claim) bool) Outcome {
	o, place, shadows := e.outcome, e.place, slices.Clone(e.shadows)
	for i := range e.Claims {
		switch c := &e.Claims[i]; {
		case exceeds != nil && !exceeds(c):
		case c.Shadow:
			shadows = append(shadows, shadow{c.place, c.RuleID})
		case c.place < place:
			o, place = *c.exceeded, c.place
		}
	}
	slices.SortFunc(shadows, func(a, b shadow) int { return cmp.Compare(a.place, b.place) })
	for _, s := range shadows {
		o.Shadow = append(o.Shadow, s.rule)
	}
	return o
}

// shadow is a shadow rule that matches.
type shadow struct {
	place int32 // in stored order
	rule  string
}

// NoPolicy is the evaluation when it is certain that no policy is active.
func NoPolicy() Evaluation {
	return Evaluation{outcome: Outcome{
		Decision: id.Allow,
		PolicyID: None,
		RuleID:   None,
		Reason:   "No policy is active.",
		Engine:   Engine,
	}}
}
