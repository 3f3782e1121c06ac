package policy

// What the parts of a compiled policy weigh, in bytes, as measured (TestWeight).
const (
	ruleWeight     = 640 // without its texts
	agentWeight    = 48
	pathStepWeight = 32  // of a path
	indexWeight    = 320 // a node of an index
)

// Weight is about how many bytes the compiled policy takes in memory.
func (c *Compiled) Weight() int { return c.weight }

// weigh is the weight of all but the conditions.
func (c *Compiled) weigh() int {
	sum := 1<<10 + indexWeight*(c.enforced.nodes()+c.limited.nodes()+c.shadowed.nodes())
	for _, targets := range [][]target{c.enforcing, c.shadowing} {
		for i := range targets {
			sum += targets[i].weigh()
		}
	}
	return sum
}

func (t *target) weigh() int {
	sum := ruleWeight + len(t.outcome.Reason) + agentWeight*len(t.agents)
	for _, p := range t.requires {
		sum += pathStepWeight * (1 + len(p))
	}
	return sum
}

// nodes counts the nodes of an index.
func (x *index) nodes() int {
	if x == nil {
		return 0
	}
	n := 1 + x.star.nodes()
	for _, next := range x.literal {
		n += next.nodes()
	}
	return n
}
