package nodes

import (
	"strings"

	"github.com/agentledger/agentledger/internal/operate/status"
)

// Count returns the number of nodes that this node sees, or 1 for a process that serves alone.
func (n *Node) Count() int {
	if n == nil {
		return 1
	}
	return max(1, len(n.Nodes()))
}

// Status describes the nodes that this node sees. It returns none for a process that serves alone.
func (n *Node) Status() []status.Node {
	all := []status.Node{}
	if n == nil {
		return all
	}
	for _, m := range n.Members() {
		all = append(all, status.Node{ID: m.ID.String(), Self: m.Self, Host: strings.TrimPrefix(m.URL, "https://"),
			Version: m.Version, Leaving: m.Leaving, BeatAgeSeconds: m.Age.Seconds(), Shards: m.Shards})
	}
	return all
}
