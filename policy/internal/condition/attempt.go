package condition

import (
	"context"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Variables are the names and values that a condition may use.
type Variables struct {
	Tool       id.Tool
	Agent      id.Agent
	ActorType  string
	ActionKind string
	Now        id.Instant
	OnBehalfOf *Subject // nil if the event does not state it
}

// Subject is on whose behalf the agent acts.
type Subject struct {
	Issuer, Subject string
	Verified        bool
}

// Attempt is the evaluation of one input while rules are tried, and the CEL activation of their
// conditions. The payload is decoded when the first rule needs it. An Attempt is not safe for
// concurrent use.
type Attempt struct {
	purse
	variables Variables
	root      Object

	state interpreter.EvalState // of the last traced condition
}

// NewAttempt returns an attempt that may spend the given units and stops when ctx ends. payload is a canonical JSON object; nil is {}.
func NewAttempt(ctx context.Context, v Variables, payload []byte, units uint64) *Attempt {
	a := &Attempt{purse: newPurse(ctx, units), variables: v}
	values := jcs.UntagPayload(payload)
	a.exact = len(values) != len(payload)
	a.root = Object{raw: values, purse: &a.purse}
	return a
}

// Charge charges the budget and reports whether it sufficed. A nil Attempt charges nothing, because
// constants are evaluated while a condition is compiled.
func (a *Attempt) Charge(units uint64) bool { return a == nil || a.purse.chargeUnits(units) }

// Refused reports whether work was skipped since BeginRule, because the budget did not suffice or
// the evaluation must end.
func (a *Attempt) Refused() bool { return a.refused }

// Ended returns why the evaluation must end, or nil.
func (a *Attempt) Ended() error { return a.ended }

// Spent returns the spent units.
func (a *Attempt) Spent() uint64 { return a.spent }

// Payload returns the payload.
func (a *Attempt) Payload() *Object { return &a.root }

// MissingPath names the first of paths that is missing, or returns "".
func (a *Attempt) MissingPath(paths []Path) string {
	for _, p := range paths {
		if why := p.MissingIn(a.Payload()); why != "" {
			return why
		}
	}
	return ""
}

// ResolveName implements cel.Activation.
func (a *Attempt) ResolveName(name string) (any, bool) {
	switch name {
	case varTool:
		return types.String(a.variables.Tool), true
	case varAgent:
		return types.String(a.variables.Agent), true
	case varActor:
		return types.String(a.variables.ActorType), true
	case varAction:
		return types.String(a.variables.ActionKind), true
	case varPayload:
		return a.Payload(), true
	case varNow:
		return types.Timestamp{Time: a.variables.Now.Time()}, true
	}
	if of := a.variables.OnBehalfOf; of != nil {
		switch name {
		case varIssuer:
			return types.String(of.Issuer), true
		case varSubject:
			return types.String(of.Subject), true
		case varVerified:
			return types.Bool(of.Verified), true
		}
	}
	return nil, false
}

// Parent implements cel.Activation.
func (a *Attempt) Parent() cel.Activation { return nil }
