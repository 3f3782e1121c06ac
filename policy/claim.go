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

// Claim is the amount that one event adds to one limit. The event matches the rule with the limit
// in all other respects (tool, agents, requires, when), so the rule matches if before + Added >
// Max. Before is the amount in the counter for the window.
//
// A counter contains the sum of the claims of its events. Events of every kind count if their
// effective decision is not deny, with all limits decided and the declared decision tightened. For
// example, a denied event adds nothing, and an event that needs an approval adds its amount. An
// event adds to every limit that it claims, even if another rule decides, and to the limits of
// shadow rules.
type Claim struct {
	Limit  *Limit // shared with the policy; must not be changed
	RuleID string
	Shadow bool   // reported if exceeded, without any effect
	Key    string // the counted scope: a tool name, an agent ID, or "" for the organization
	Added  decimal.Decimal

	place    int32    // among the enforcing rules, or among the shadow rules
	exceeded *Outcome // the rule's outcome; nil for a shadow rule
}

// Exceeds reports whether the rule matches if the counter is at before. A sum that does not fit
// into a decimal exceeds the limit.
func (c *Claim) Exceeds(before decimal.Decimal) bool {
	after, err := before.Add(c.Added)
	return err != nil || after.Cmp(c.Limit.Max) > 0
}

// Counter returns the name of the claim's counter within an organization: the SHA-256 of the JCS of
// {by, count, currency, key, limit_id, sum}. A counter continues if another version of the policy,
// or another policy, has the same limit. A new counter begins if the limit counts something else.
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

// Evaluation is a decision in which only limits are open. It can be settled any number of times.
type Evaluation struct {
	Claims []Claim // claims on limits, including shadow rules; must not be changed

	outcome Outcome // if no limit is exceeded
	place   int32   // of the enforcing rule that decides outcome
	shadows []shadow
}

// Settle returns the outcome, given the claims that exceed their limits. It combines rules without
// a limit and rules whose limit is exceeded as the package comment describes. If exceeds is nil,
// all claims exceed their limits: a caller that cannot read counters passes nil.
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

// NoPolicy returns the evaluation to use if no policy is active.
func NoPolicy() Evaluation {
	return Evaluation{outcome: Outcome{
		Decision: id.Allow,
		PolicyID: None,
		RuleID:   None,
		Reason:   "No policy is active.",
		Engine:   Engine,
	}}
}
