package policy

import (
	"context"

	"github.com/agentledger/agentledger/policy/internal/condition"
)

// verdict is the result of one rule for an input with its tool, agent and subject.
type verdict uint8

const (
	unmatched verdict = iota
	skipped           // a rule error that counts as no match
	matched
	failed  // a rule error that counts as a match
	limited // a match if the limit is exceeded
)

func (v verdict) isMatch() bool { return v == matched || v == failed }

// judgeAttempt evaluates a rule. why is the reason of a rule error.
func (t *target) judgeAttempt(a *condition.Attempt) (v verdict, why string) {
	a.BeginRule()
	if !a.Charge(t.price) {
		return t.verdictOnError(), condition.ErrTooExpensive.Error()
	}
	why = a.MissingPath(t.requires)
	if a.Refused() { // the budget did not suffice to read all paths
		return t.verdictOnError(), condition.ErrTooExpensive.Error()
	}
	if why != "" {
		return t.verdictOnError(), why
	}
	if t.when != nil {
		holds, err := t.when.Holds(a)
		if err != nil {
			return t.verdictOnError(), err.Error()
		}
		if !holds {
			return unmatched, ""
		}
	}
	if t.limit == nil {
		return matched, ""
	}
	_, why = t.limit.amountAdded(a.Payload(), t.sum)
	if a.Refused() {
		return t.verdictOnError(), condition.ErrTooExpensive.Error()
	}
	if why != "" {
		return t.verdictOnError(), why
	}
	return limited, ""
}

func (t *target) verdictOnError() verdict {
	if t.onError == SkipOnError {
		return skipped
	}
	return failed
}

// outcomeFor returns the outcome if the rule decides.
func (t *target) outcomeFor(v verdict, why string) Outcome {
	o := t.outcome
	if v == failed {
		o.Reason, o.RuleError = t.failed+why+".", why
	}
	return o
}

// newClaim returns the claim of a rule with a limit.
func (t *target) newClaim(o *occasion, place int32) Claim {
	c := Claim{Limit: t.limit, RuleID: t.outcome.RuleID, place: place, exceeded: &t.outcome}
	c.Added, _ = t.limit.amountAdded(o.startAttempt().Payload(), t.sum)
	switch t.limit.By {
	case ByTool:
		c.Key = string(o.in.Tool)
	case ByAgent:
		c.Key = string(o.in.Agent)
	}
	return c
}

// occasion creates the attempt when the first rule needs it: most inputs are decided by their tool
// and agent, without an allocation.
type occasion struct {
	ctx context.Context
	in  Input
	try *condition.Attempt
}

func (o *occasion) startAttempt() *condition.Attempt {
	if o.try == nil {
		o.try = condition.NewAttempt(o.ctx, o.in.variables(), o.in.Payload, MaxTotalCost)
	}
	return o.try
}
