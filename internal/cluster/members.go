package cluster

import (
	"slices"
	"strings"
	"time"
)

// Member is a node as another node sees it.
type Member struct {
	Node
	Self   bool
	Age    time.Duration // time since a new beat of the node was seen; for the node itself, since its latest beat started
	Shards int           // number of shards that it owns in the latest view
}

// Members returns all nodes that the node knows, sorted by ID.
func (c *Cluster) Members() []Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.state, c.options.Clock()
	shards := make(map[NodeID]int, len(s.members))
	for _, l := range s.leases {
		shards[l.Owner]++
	}
	all := make([]Member, 0, len(s.members))
	for _, m := range s.members {
		seen := m.seen
		if m.ID == s.self {
			seen = s.renewed
		}
		all = append(all, Member{Node: m.Node, Self: m.ID == s.self, Age: now - seen, Shards: shards[m.ID]})
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return all
}
