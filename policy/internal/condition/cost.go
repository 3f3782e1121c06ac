package condition

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// Costs of a policy. All of these numbers are part of a policy's meaning: an auditor who evaluates
// with other numbers may get another result.
//
// Costs are counted in units. A node of a condition (a name, a literal, a member look-up, a
// function) costs one unit, and the operands that a function reads cost more (price.go). A unit
// takes at most about 100 ns of processor time.
const (
	MaxCost      = 100_000  // units of one condition of one evaluation
	MaxTotalCost = 500_000  // units of one evaluation, in the order in which rules are tried
	MaxMatched   = 64 << 10 // bytes of a text that is matched against a pattern
	MaxConverted = 64       // bytes of a text that is converted to a number or a time
)

// Bounds of the names in conditions.
const (
	MaxTool   = textcheck.MaxToolGlob // bytes of a tool name
	MaxSource = 2048                  // bytes of a condition
)

// Costs of saving a policy. Parse rejects a policy that exceeds them. Compile does not, because
// policies that were saved before these bounds existed remain valid.
const (
	MaxParts        = 20_000 // of all distinct conditions of a policy (CountParts)
	MaxInstructions = 10_000 // of all distinct patterns of a policy (classSize)
)

// ErrTooExpensive is the error of a condition that exceeds MaxCost or, with others, MaxTotalCost.
var ErrTooExpensive = errors.New("the condition costs too much")

// checkInterval is the number of units between two checks of the context.
const checkInterval = 10_000

// purse counts the units that an evaluation has spent. The zero value has no budget.
type purse struct {
	ctx     context.Context // nil if no context ends the evaluation
	spent   uint64          // units
	ceiling uint64          // maximum of spent for the current rule
	total   uint64          // maximum of spent for the evaluation
	look    uint64          // value of spent at which ctx is checked next
	refused bool            // work was skipped since BeginRule
	ended   error           // why the evaluation must end, or nil
	exact   bool            // the payload is tagged: its numbers may be exact numbers
}

// newPurse returns a purse with a budget of units.
func newPurse(ctx context.Context, units uint64) purse {
	return purse{ctx: ctx, total: units, ceiling: units, look: checkInterval}
}

// BeginRule begins a rule, whose condition may spend at most MaxCost of the remaining units.
func (p *purse) BeginRule() {
	p.ceiling = min(p.spent+MaxCost, p.total)
	p.refused = p.spent >= p.total || p.ended != nil
}

// chargeUnits spends units and reports whether the budget sufficed. Callers MUST NOT do the work
// otherwise. If p is nil, the work is free.
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

// chargeReading spends units for decoding a part of the payload. This is done once for all rules,
// so it counts for the evaluation and not for the first condition that needs it. p may be nil.
func (p *purse) chargeReading(units int) bool {
	if p == nil {
		return true
	}
	p.ceiling = min(p.ceiling+uint64(units), p.total)
	return p.chargeUnits(uint64(units))
}

// checkContext checks whether the evaluation must end.
func (p *purse) checkContext() {
	p.look = p.spent + checkInterval
	if p.ctx == nil || p.ended != nil {
		return
	}
	if p.ended = p.ctx.Err(); p.ended != nil {
		p.refused = true
	}
}
