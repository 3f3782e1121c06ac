package policy

import "context"

// Cost returns what an evaluation costs, in units.
func Cost(c *Compiled, in Input) uint64 {
	a := occasion{ctx: context.Background(), in: in}
	c.evaluate(&a, true)
	if a.try == nil {
		return 0
	}
	return a.try.spent
}

// PartsOf counts the parts of a condition's source.
func PartsOf(source string) int { return partsOf(source) }
