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

// Claim is what one event asks of one limit: the rule that has the limit concerns
// the event in all other respects (tool, agents, requires, when), so that it
// matches when before + Added > Max, before being what the counter holds of the
// window.
//
// A counter holds what was added by the claims of its events: those of every kind
// whose effective decision, with all limits decided and the declared decision
// tightened, is not deny. An event that is refused adds nothing, one that
// needs an approval adds. An event adds to every limit that it claims, whichever
// rule decides, and to those of shadow rules as well.
type Claim struct {
	Limit  *Limit // shared with the policy, not to be changed
	RuleID string
	Shadow bool   // reported when exceeded, without any effect
	Key    string // whom it is counted for: a tool name, an agent id, or "" by organization
	Added  decimal.Decimal

	place    int32    // among the enforcing rules, or among the shadow rules
	exceeded *Outcome // what the rule says, nil for a shadow rule
}

// Exceeds reports whether the rule matches when the counter is at before. A sum
// that has no room is one.
func (c *Claim) Exceeds(before decimal.Decimal) bool {
	after, err := before.Add(c.Added)
	return err != nil || after.Cmp(c.Limit.Max) > 0
}

// Counter names the counter that the claim is about, within an organization:
// SHA-256 of the JCS of {by, count, currency, key, limit_id, sum}. What is counted
// goes on when another version of a policy, or another policy, has the same limit,
// and begins anew when the limit counts something else.
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
	Claims []Claim // what the event asks of limits, those of shadow rules too; not to be changed

	outcome Outcome // when no limit is exceeded
	place   int32   // of the enforcing rule that it is the word of
	shadows []shadow
}

// Settle returns the outcome, given which claims exceed their limits: rules
// without a limit and those whose limit is exceeded are combined as the package
// comment says. nil stands for "all do", for whoever can't tell.
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
