package policy

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
)

// Outcome is a decision and its origin. Its slices are shared with the policy and must not be
// changed.
type Outcome struct {
	Decision      id.Decision
	PolicyID      string  // None if no policy is active
	PolicyVersion uint64  // 0 if no policy is active
	PolicyDigest  id.Hash // zero if no policy is active
	RuleID        string  // DefaultRule if no rule matches
	Reason        string  // for humans, never empty
	Engine        string
	Obligations   []Obligation // of the rule that decided
	Shadow        []string     // IDs of the matching shadow rules, in stored order
	RuleError     string       // why the rule that decided could not be evaluated, or ""
}

// Effective returns the decision that a declared decision becomes under this outcome. A declared
// decision is only ever tightened.
func (o Outcome) Effective(declared id.Decision) id.Decision { return declared.Tighten(o.Decision) }

// Evaluate decides everything except limits. It tries only rules whose glob matches, in the order
// of their strength, and evaluates no more conditions than necessary.
func (c *Compiled) Evaluate(in Input) Evaluation {
	e, _ := c.EvaluateWithin(context.Background(), in) // never stops early
	return e
}

// EvaluateLegacy decides as services did before limits applied to events of every kind: rules with
// a limit do not count for an event whose ActionKind is not tool_call. It is for checks of old
// records.
func (c *Compiled) EvaluateLegacy(in Input) Evaluation {
	return c.evaluateRules(&occasion{ctx: context.Background(), in: in}, in.ActionKind == LegacyLimitKind)
}

// EvaluateWithin is Evaluate but stops when ctx ends and then returns only the error of ctx.
// Callers use ctx to bound the time of an evaluation. MaxTotalCost ends an evaluation long before
// such a bound unless the machine stalls, and that end is part of the answer.
func (c *Compiled) EvaluateWithin(ctx context.Context, in Input) (Evaluation, error) {
	a := occasion{ctx: ctx, in: in}
	e := c.evaluateRules(&a, true)
	if a.try != nil && a.try.Ended() != nil {
		return Evaluation{}, fmt.Errorf("evaluate policy: %w", a.try.Ended())
	}
	return e, nil
}

func (c *Compiled) evaluateRules(a *occasion, limits bool) (e Evaluation) {
	if a.in.Tool == "" {
		return Evaluation{outcome: c.fallback}
	}
	e.outcome, e.place = c.strongestRule(a)
	if limits {
		c.applyLimits(a, &e)
	}
	if len(c.shadowing) > 0 {
		c.applyShadows(a, &e, limits)
	}
	return e
}

// inlineCandidates is how many rules with conditions may match a tool before their list is
// allocated.
const inlineCandidates = 16

// strongestRule returns the outcome of the strongest matching rule without a limit.
func (c *Compiled) strongestRule(a *occasion) (o Outcome, place int32) {
	var buf [inlineCandidates]int32
	candidates, certain := buf[:0], int32(len(c.enforcing)) // certain: the strongest plain rule
	c.enforced.visitMatches(string(a.in.Tool), func(rules []int32) {
		for _, i := range rules {
			if i >= certain {
				return
			}
			switch t := &c.enforcing[i]; {
			case !t.concernsAgent(a.in.Agent), !t.concernsSubject(&a.in):
			case t.matchesAlways():
				certain = i
				return
			default:
				candidates = append(candidates, i)
			}
		}
	})
	slices.Sort(candidates)
	for _, i := range candidates {
		if i >= certain {
			break
		}
		if v, why := c.enforcing[i].judgeAttempt(a.startAttempt()); v.isMatch() {
			return c.enforcing[i].outcomeFor(v, why), i
		}
	}
	if int(certain) < len(c.enforcing) {
		return c.enforcing[certain].outcome, certain
	}
	return c.fallback, certain
}

// concernedRules returns the sorted places of the targets in x that apply to the input's tool, agent
// and subject.
func (a *occasion) concernedRules(x *index, targets []target) []int32 {
	var found []int32
	x.visitMatches(string(a.in.Tool), func(rules []int32) {
		for _, i := range rules {
			if t := &targets[i]; t.concernsAgent(a.in.Agent) && t.concernsSubject(&a.in) {
				found = append(found, i)
			}
		}
	})
	slices.Sort(found)
	return found
}

// applyLimits adds the claims of enforcing rules to e. If one of these rules cannot be evaluated
// and is stronger, its outcome replaces the one in e.
func (c *Compiled) applyLimits(a *occasion, e *Evaluation) {
	for _, i := range a.concernedRules(&c.limited, c.enforcing) {
		t := &c.enforcing[i]
		switch v, why := t.judgeAttempt(a.startAttempt()); {
		case v == limited:
			e.Claims = append(e.Claims, t.newClaim(a, i))
		case v == failed && i < e.place:
			e.outcome, e.place = t.outcomeFor(v, why), i
		}
	}
}

// applyShadows adds the matching shadow rules and, if limits is set, the claims of shadow rules.
func (c *Compiled) applyShadows(a *occasion, e *Evaluation, limits bool) {
	for _, i := range a.concernedRules(&c.shadowed, c.shadowing) {
		t := &c.shadowing[i]
		if t.limit != nil && !limits {
			continue
		}
		switch v, _ := t.judgeAttempt(a.startAttempt()); {
		case v == limited:
			claim := t.newClaim(a, i)
			claim.Shadow, claim.exceeded = true, nil
			e.Claims = append(e.Claims, claim)
		case v.isMatch():
			e.shadows = append(e.shadows, shadow{i, t.outcome.RuleID})
		}
	}
}
