package policy

import (
	"context"

	"github.com/agentledger/agentledger/policy/internal/condition"
)

// Cost returns the cost of an evaluation in units.
func Cost(c *Compiled, in Input) uint64 {
	a := occasion{ctx: context.Background(), in: in}
	c.evaluateRules(&a, true)
	if a.try == nil {
		return 0
	}
	return a.try.Spent()
}

// PartsOf counts the parts of a condition's source.
func PartsOf(source string) int { return condition.CountParts(source) }
