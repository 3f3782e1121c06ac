package condition

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// Costs of a policy. All of these numbers are part of a policy's meaning: an auditor who evaluates
// with others may get another answer.
//
// Costs are counted in units. A node of a condition (a name, a literal, a member look-up, a
// function) costs one unit, and the operands that a function reads cost more (price.go). A unit is
// about 100 ns of a processor at the most.
const (
	MaxCost      = 100_000  // units of one condition of one evaluation
	MaxTotalCost = 500_000  // units of one evaluation, in the order in which rules are tried
	MaxMatched   = 64 << 10 // bytes of a text that is matched with a pattern
	MaxConverted = 64       // bytes of a text that is converted to a number or a time
)

// Bounds of the names in conditions.
const (
	MaxTool   = textcheck.MaxToolGlob // bytes of a tool name
	MaxSource = 2048                  // bytes of a condition
)

// Costs of saving a policy. Parse refuses a policy beyond them. Compile does not, because a policy
// that was saved before these bounds existed goes on.
const (
	MaxParts        = 20_000 // of all different conditions of a policy together (CountParts)
	MaxInstructions = 10_000 // of all different patterns of a policy together (sizeOf)
)

// ErrTooExpensive is the error of a condition that exceeds MaxCost or, with others, MaxTotalCost.
var ErrTooExpensive = errors.New("the condition costs too much")

// checkInterval is after how many units an evaluation asks whether it has to end.
const checkInterval = 10_000

// purse counts the units that an evaluation has spent. The zero value has nothing to spend.
type purse struct {
	ctx     context.Context // nil: an evaluation that no context ends
	spent   uint64          // units
	ceiling uint64          // that spent must not exceed
	total   uint64          // the highest ceiling
	look    uint64          // the value of spent at which ctx is asked again
	refused bool            // something was not done since open
	ended   error           // why the evaluation has to end, nil while it has not
}

// newPurse returns a purse with so many units.
func newPurse(ctx context.Context, units uint64) purse {
	return purse{ctx: ctx, total: units, ceiling: units, look: checkInterval}
}

// BeginRule begins a rule: its condition may spend at most MaxCost of the units left.
func (p *purse) BeginRule() {
	p.ceiling = min(p.spent+MaxCost, p.total)
	p.refused = p.spent >= p.total || p.ended != nil
}

// chargeUnits takes units and reports whether there were as many. Callers MUST NOT do work that was
// refused. p may be nil: then the work is free.
func (p *purse) chargeUnits(units uint64) bool {
	if p == nil {
		return true
	}
	if p.refused {
		return false
	}
	if units > p.ceiling-p.spent {
		p.spent, p.refused = p.ceiling, true
		return false
	}
	p.spent += units
	if p.spent >= p.look {
		p.checkContext()
	}
	return !p.refused
}

// chargeReading takes units for reading a part of the payload, which is done once for all
// rules: it counts for the evaluation, and not for the condition that comes first. p
// may be nil.
func (p *purse) chargeReading(units int) bool {
	if p == nil {
		return true
	}
	p.ceiling = min(p.ceiling+uint64(units), p.total)
	return p.chargeUnits(uint64(units))
}

// checkContext asks whether the evaluation has to end.
func (p *purse) checkContext() {
	p.look = p.spent + checkInterval
	if p.ctx == nil || p.ended != nil {
		return
	}
	if p.ended = p.ctx.Err(); p.ended != nil {
		p.refused = true
	}
}
