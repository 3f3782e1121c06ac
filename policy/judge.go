package policy

import (
	"context"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
)

// verdict is what one rule says of one input that its tool and agents concern.
type verdict uint8

const (
	unmatched verdict = iota
	skipped           // it could not be evaluated, and that counts as no
	matched
	failed  // it could not be evaluated, and that counts as yes
	limited // yes, if its limit is exceeded
)

func (v verdict) matches() bool { return v == matched || v == failed }

// judge evaluates a rule. why is what went wrong when it could not be evaluated.
func (t *target) judge(a *attempt) (v verdict, why string) {
	a.open()
	if !a.charge(t.price) {
		return t.error(), errTooExpensive.Error()
	}
	why = a.missing(t.requires)
	if a.refused { // something was not read
		return t.error(), errTooExpensive.Error()
	}
	if why != "" {
		return t.error(), why
	}
	if t.when != nil {
		holds, err := t.when.holds(a)
		if err != nil {
			return t.error(), err.Error()
		}
		if !holds {
			return unmatched, ""
		}
	}
	if t.limit == nil {
		return matched, ""
	}
	_, why = t.limit.added(a.payload(), t.sum)
	if a.refused {
		return t.error(), errTooExpensive.Error()
	}
	if why != "" {
		return t.error(), why
	}
	return limited, ""
}

func (t *target) error() verdict {
	if t.onError == SkipOnError {
		return skipped
	}
	return failed
}

// word is the outcome when the rule decides.
func (t *target) word(v verdict, why string) Outcome {
	o := t.outcome
	if v == failed {
		o.Reason = t.failed + why + "."
	}
	return o
}

// claim returns what the rule, which is limited, asks of its limit.
func (t *target) claim(a *attempt, place int32) Claim {
	c := Claim{Limit: t.limit, RuleID: t.outcome.RuleID, place: place, exceeded: &t.outcome}
	c.Added, _ = t.limit.added(a.payload(), t.sum)
	switch t.limit.By {
	case ByTool:
		c.Key = string(a.in.Tool)
	case ByAgent:
		c.Key = string(a.in.Agent)
	}
	return c
}

// attempt is one input while rules are tried, and the CEL activation of their
// conditions. The payload is read when the first rule asks for it.
type attempt struct {
	purse
	in   Input
	root object

	state interpreter.EvalState // of the last condition that tells its parts
}

func newAttempt(ctx context.Context, in Input, units uint64) *attempt {
	a := &attempt{purse: newPurse(ctx, units), in: in}
	a.root = object{raw: in.Payload, purse: &a.purse}
	return a
}

// charge is that of the purse; nobody pays for what is evaluated as it is compiled,
// where a is nil.
func (a *attempt) charge(units uint64) bool { return a == nil || a.purse.charge(units) }

// occasion makes the attempt when a rule needs one: most inputs are decided by
// their tool and agent, without an allocation.
type occasion struct {
	ctx context.Context
	in  Input
	try *attempt
}

func (o *occasion) attempt() *attempt {
	if o.try == nil {
		o.try = newAttempt(o.ctx, o.in, MaxTotalCost)
	}
	return o.try
}

func (a *attempt) payload() *object { return &a.root }

// missing says which of paths is not there, "" when all are.
func (a *attempt) missing(paths []path) string {
	for _, p := range paths {
		if why := p.missing(a.payload()); why != "" {
			return why
		}
	}
	return ""
}

// ResolveName implements cel.Activation.
func (a *attempt) ResolveName(name string) (any, bool) {
	switch name {
	case varTool:
		return types.String(a.in.Tool), true
	case varAgent:
		return types.String(a.in.Agent), true
	case varActor:
		return types.String(a.in.ActorType), true
	case varAction:
		return types.String(a.in.ActionKind), true
	case varPayload:
		return a.payload(), true
	case varNow:
		return types.Timestamp{Time: a.in.Now.Time()}, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (a *attempt) Parent() cel.Activation { return nil }
