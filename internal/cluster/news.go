package cluster

// News are changes of leases that one node sends to the others at once, so that they need not read the table first. News
// are hints: a node that misses them learns the same from its next beat.
type News struct {
	From    NodeID // the node that made the changes
	Leaving bool   // it takes no more shards (Node.Leaving)

	Since  Epoch   // News has all changes after this epoch
	Epoch  Epoch   // of the latest change; 0 if only members changed
	Leases []Lease // as in View
}

// newsOf returns the news of a step that was answered with a view.
func newsOf(s Step, v View) News {
	if !s.ChangesLeases() {
		return News{}
	}
	return News{From: s.Node, Leaving: s.Leaving, Since: s.Known, Epoch: v.Epoch, Leases: v.Leases}
}

// Hear takes news of another node in, and makes the node beat at once. The node may own a shard from then on, as
// long as its newest beat lets it: it was a member when the lease became its own, and nobody forgets it before its
// belief ends.
func (c *Cluster) Hear(n News) {
	c.mu.Lock()
	if c.state.hear(n) {
		close(c.changed)
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	c.Look()
}

// hear takes news in and reports whether leases changed. News that leave a gap behind the known epoch are left to the
// next beat: the node would take itself for one that knows all leases of a later epoch. A node that is being stopped
// hears nothing, because a beat by which it leaves may be under way.
func (s *state) hear(n News) (changed bool) {
	if !s.joined || s.stops || n.Since > s.epoch || n.Epoch <= s.epoch {
		return false
	}
	for _, l := range n.Leases {
		s.observeLease(l)
	}
	s.epoch = n.Epoch
	if m := s.members[n.From]; m != nil { // else its shards would go back to it before the next beat
		m.Leaving = n.Leaving
	}
	return true
}
