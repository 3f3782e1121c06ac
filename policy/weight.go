package policy

// Measured sizes of the parts of a compiled policy, in bytes (TestWeight).
const (
	ruleWeight     = 640 // without its texts
	agentWeight    = 48
	subjectWeight  = 48  // without its texts
	pathStepWeight = 32  // of a path
	indexWeight    = 320 // a node of an index
)

// Weight returns the approximate memory size of the compiled policy in bytes.
func (c *Compiled) Weight() int { return c.weight }

// weighRules returns the weight of everything except the conditions.
func (c *Compiled) weighRules() int {
	sum := 1<<10 + indexWeight*(c.enforced.countNodes()+c.limited.countNodes()+c.shadowed.countNodes())
	for _, targets := range [][]target{c.enforcing, c.shadowing} {
		for i := range targets {
			sum += targets[i].weighRule()
		}
	}
	return sum
}

func (t *target) weighRule() int {
	sum := ruleWeight + len(t.outcome.Reason) + agentWeight*len(t.agents)
	if t.subject != nil {
		sum += subjectWeight + len(t.subject.Issuer) + len(t.subject.Subject)
	}
	for _, p := range t.requires {
		sum += pathStepWeight * (1 + len(p))
	}
	return sum
}

// countNodes returns the number of nodes of an index.
func (x *index) countNodes() int {
	if x == nil {
		return 0
	}
	n := 1 + x.star.countNodes()
	for _, next := range x.literal {
		n += next.countNodes()
	}
	return n
}
