package nodes

import "github.com/agentledger/agentledger/internal/cluster"

// Of returns a node of a cluster that has no more than that.
func Of(c *cluster.Cluster) *Node { return &Node{Cluster: c} }
