// Package clustertest has a table of nodes in memory, and the suite that every table passes.
package clustertest

import (
	"context"
	"fmt"
	"sync"

	"github.com/agentledger/agentledger/internal/cluster"
)

// Memory is a cluster.Table in memory, for tests. It may be called concurrently.
type Memory struct {
	mu     sync.Mutex
	nodes  map[cluster.NodeID]cluster.Node
	leases []cluster.Lease
	epoch  cluster.Epoch
}

var _ cluster.Table = (*Memory)(nil)

// NewMemory returns a table without nodes.
func NewMemory(shards int) *Memory {
	m := &Memory{nodes: map[cluster.NodeID]cluster.Node{}, leases: make([]cluster.Lease, shards)}
	for i := range m.leases {
		m.leases[i].Shard = cluster.Shard(i)
	}
	return m
}

// Join implements cluster.Table.
func (m *Memory) Join(_ context.Context, n cluster.Node) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.nodes[n.ID]; taken {
		return fmt.Errorf("join: there is a node %v", n.ID)
	}
	n.Beats = 0
	m.nodes[n.ID] = n
	return nil
}

// Beat implements cluster.Table.
func (m *Memory) Beat(_ context.Context, s cluster.Step) (cluster.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, found := m.nodes[s.Node]
	if !found || s.Known > m.epoch {
		return cluster.View{}, cluster.ErrForgotten
	}
	n.Beats++
	n.Leaving = s.Leaving
	m.nodes[s.Node] = n
	m.applyChanges(s)
	return m.view(s.Known), nil
}

func (m *Memory) applyChanges(s cluster.Step) {
	if s.ChangesLeases() {
		m.epoch++
	}
	for _, f := range s.Forget {
		if n, found := m.nodes[f.Node]; found && n.Beats == f.Beats && f.Node != s.Node {
			delete(m.nodes, f.Node)
		}
	}
	for _, g := range s.Give {
		if _, found := m.nodes[g.To]; found && g.Lease.Owner == s.Node && m.leases[g.Lease.Shard] == g.Lease {
			m.setOwner(g.Lease.Shard, g.To)
		}
	}
	for _, shard := range s.Take {
		owner := m.leases[shard].Owner
		if _, found := m.nodes[owner]; !found || owner == s.Node {
			m.setOwner(shard, s.Node)
		}
	}
	if s.Leave {
		delete(m.nodes, s.Node)
	}
}

func (m *Memory) setOwner(shard cluster.Shard, n cluster.NodeID) {
	m.leases[shard] = cluster.Lease{Shard: shard, Owner: n, Epoch: m.epoch}
}

func (m *Memory) view(known cluster.Epoch) cluster.View {
	v := cluster.View{Epoch: m.epoch}
	for _, n := range m.nodes {
		v.Nodes = append(v.Nodes, n)
	}
	for _, l := range m.leases {
		if l.Epoch > known {
			v.Leases = append(v.Leases, l)
		}
	}
	return v
}

// Lease returns the lease of a shard.
func (m *Memory) Lease(shard cluster.Shard) cluster.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[shard]
}

// Beats returns the count of a node, 0 for one that is no member.
func (m *Memory) Beats(n cluster.NodeID) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes[n].Beats
}
