package condition

import (
	"context"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/agentledger/agentledger/id"
)

// Variables are the names that a condition may use, with their values.
type Variables struct {
	Tool       id.Tool
	Agent      id.Agent
	ActorType  string
	ActionKind string
	Payload    []byte // canonical JSON object; nil is {}
	Now        id.Instant
}

// Attempt is one input while rules are tried, and the CEL activation of their
// conditions. The payload is read when the first rule asks for it. An Attempt is used
// by one goroutine.
type Attempt struct {
	purse
	variables Variables
	root      Object

	state interpreter.EvalState // of the last condition that keeps the values of its parts
}

// NewAttempt returns an attempt that may spend so many units and ends with ctx.
func NewAttempt(ctx context.Context, v Variables, units uint64) *Attempt {
	a := &Attempt{purse: newPurse(ctx, units), variables: v}
	a.root = Object{raw: v.Payload, purse: &a.purse}
	return a
}

// Charge charges the purse. A nil Attempt charges nothing, because constants are evaluated while a
// condition is compiled.
func (a *Attempt) Charge(units uint64) bool { return a == nil || a.purse.chargeUnits(units) }

// Refused reports whether something was not done since BeginRule, because its price was
// not left or the evaluation has to end.
func (a *Attempt) Refused() bool { return a.refused }

// Ended returns why the evaluation has to end, nil while it has not.
func (a *Attempt) Ended() error { return a.ended }

// Spent returns the units that were spent.
func (a *Attempt) Spent() uint64 { return a.spent }

// Payload returns the payload.
func (a *Attempt) Payload() *Object { return &a.root }

// MissingPath says which of paths is not there, "" when all are.
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
	return nil, false
}

// Parent implements cel.Activation.
func (a *Attempt) Parent() cel.Activation { return nil }
