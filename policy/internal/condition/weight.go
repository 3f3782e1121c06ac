package condition

// Measured sizes of compiled conditions in memory, in bytes (TestWeight of package policy).
const (
	conditionWeight   = 512
	nodeWeight        = 128
	patternWeight     = 1 << 10
	instructionWeight = 112
	choiceWeight      = 10 // of each pair of choices of a pattern that begins with ^
)

// Weight returns the weight of the compiled conditions and patterns, each distinct one once.
func (c *Compiler) Weight() int {
	sum := 0
	for _, made := range c.compiled {
		sum += conditionWeight + nodeWeight*made.nodes
	}
	for text, made := range c.patterns.known {
		sum += patternWeight + len(text) + instructionWeight*made.size + choiceWeight*made.choices*made.choices
	}
	return sum
}
