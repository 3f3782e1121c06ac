package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
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
	if why := a.missing(t.requires); why != "" {
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
	if _, why := t.limit.added(a.payload(), t.sum); why != "" {
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
	in    Input
	root  *object
	spent uint64 // of maxTotalCost
}

// occasion makes the attempt when a rule needs one: most inputs are decided by
// their tool and agent, without an allocation.
type occasion struct {
	in  Input
	try *attempt
}

func (o *occasion) attempt() *attempt {
	if o.try == nil {
		o.try = &attempt{in: o.in}
	}
	return o.try
}

func (a *attempt) payload() *object {
	if a.root == nil {
		a.root = &object{raw: a.in.Payload}
	}
	return a.root
}

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
