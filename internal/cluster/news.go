package cluster

// News contains changes of leases that one node sends to the others at once, so that they need not read the table
// first. News are hints: a node that misses them learns the same from its next beat.
type News struct {
	From    NodeID // the node that made the changes
	Leaving bool   // whether it takes no more shards (Node.Leaving)

	Since  Epoch   // News contains all changes after this epoch
	Epoch  Epoch   // of the latest change; 0 if only members changed
	Leases []Lease // as in View
}

// newsOf returns the news of a step that resulted in a view.
func newsOf(s Step, v View) News {
	if !s.ChangesLeases() {
		return News{}
	}
	return News{From: s.Node, Leaving: s.Leaving, Since: s.Known, Epoch: v.Epoch, Leases: v.Leases}
}

// Hear processes news of another node, and makes the node beat at once. The node may own a shard from then on, as long
// as its latest beat allows it: it was a member when it got the lease, and nobody forgets it before it stops owning.
func (c *Cluster) Hear(n News) {
	c.mu.Lock()
	if c.state.hear(n) {
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	c.Look()
}

// hear processes news and reports whether leases changed. It ignores news that leave a gap after the known epoch, and
// leaves them to the next beat: otherwise the node would claim to know all leases of a later epoch. A node that is
// being stopped ignores all news, because the beat by which it leaves may be in flight.
func (s *state) hear(n News) (changed bool) {
	if !s.joined || s.stops || n.Since > s.epoch || n.Epoch <= s.epoch {
		return false
	}
	for _, l := range n.Leases {
		s.observeLease(l)
	}
	s.epoch = n.Epoch
	if m := s.members[n.From]; m != nil { // otherwise its shards would return to it before the next beat
		m.Leaving = n.Leaving
	}
	return true
}
