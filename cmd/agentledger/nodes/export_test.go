package nodes

import "github.com/agentledger/agentledger/internal/cluster"

// Of returns a node that consists only of a cluster.
func Of(c *cluster.Cluster) *Node { return &Node{Cluster: c} }
