package cluster

import (
	"slices"
	"strings"
	"time"
)

// Member is a node as another one sees it.
type Member struct {
	Node
	Self   bool
	Age    time.Duration // since a new beat of the node was seen; of the node itself, since its newest beat began
	Shards int           // that it owns by the newest view
}

// Members returns all nodes that the node knows, by their ids.
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
