package policystore

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// Ledgers reads counters. log.Ledgers implements it.
type Ledgers interface {
	Counted(ctx context.Context, t id.Tenant, claims []log.Claim, now id.Instant) ([]decimal.Decimal, error)
}

// DecideNow decides with the values of the counters at now. Events that are committed later may find higher values.
// If it returns an error, the caller must not allow anything.
func DecideNow(
	ctx context.Context, l Ledgers, s *log.State, e *policy.Evaluation, now id.Instant,
) (policy.Outcome, error) {
	if len(e.Claims) == 0 {
		return e.Settle(nil), nil
	}
	before, err := l.Counted(ctx, s.Identity().Tenant, claimsFor(e), max(now, s.LastReceived()))
	if err != nil {
		return policy.Outcome{}, err
	}
	return settleLimits(e, before), nil
}

// LimitClaims returns the claims of an evaluation on counters, and the function with which the sequencer decides.
// state is the policy of the event's record without the outcome.
func LimitClaims(e *policy.Evaluation, state event.Policy) ([]log.Claim, func(before []decimal.Decimal) event.Policy) {
	return claimsFor(e), func(before []decimal.Decimal) event.Policy {
		decided := recordOutcome(settleLimits(e, before), state)
		decided.Limits = policy.AppendTallies(nil, makeTallies(e, before))
		return decided
	}
}

// recordOutcome sets the members of a record's policy that depend on the outcome.
func recordOutcome(o policy.Outcome, state event.Policy) event.Policy {
	state.Effective = o.Effective(state.Declared)
	state.PolicyID, state.PolicyVersion, state.PolicyDigest = o.PolicyID, o.PolicyVersion, o.PolicyDigest
	state.RuleID, state.Engine = o.RuleID, o.Engine
	return state
}

func claimsFor(e *policy.Evaluation) []log.Claim {
	all := make([]log.Claim, len(e.Claims))
	for i := range e.Claims {
		c := &e.Claims[i]
		all[i] = log.Claim{
			Counter: c.Counter(),
			Window:  time.Duration(c.Limit.WindowSeconds) * time.Second,
			Added:   c.Added,
		}
	}
	return all
}

// settleLimits decides with the values of the counters of e's claims, in the order of the claims.
func settleLimits(e *policy.Evaluation, before []decimal.Decimal) policy.Outcome {
	held := make(map[*policy.Limit]decimal.Decimal, len(before))
	for i := range e.Claims {
		held[e.Claims[i].Limit] = before[i]
	}
	return e.Settle(func(c *policy.Claim) bool { return c.Exceeds(held[c.Limit]) })
}

func makeTallies(e *policy.Evaluation, before []decimal.Decimal) []policy.Tally {
	all := make([]policy.Tally, len(before))
	for i := range e.Claims {
		all[i] = policy.Tally{LimitID: e.Claims[i].Limit.ID, Before: before[i], Added: e.Claims[i].Added}
	}
	return all
}
