package nodestest

import (
	"context"
	"fmt"
	"sync"

	"github.com/agentledger/agentledger/internal/cluster"
)

// MemoryTable is a cluster.Table in memory. Its methods may be called concurrently.
type MemoryTable struct {
	mu     sync.Mutex
	nodes  map[cluster.NodeID]cluster.Node
	leases []cluster.Lease
	epoch  cluster.Epoch
}

var _ cluster.Table = (*MemoryTable)(nil)

// NewMemoryTable returns a table without nodes.
func NewMemoryTable(shards int) *MemoryTable {
	m := &MemoryTable{nodes: map[cluster.NodeID]cluster.Node{}, leases: make([]cluster.Lease, shards)}
	for i := range m.leases {
		m.leases[i].Shard = cluster.Shard(i)
	}
	return m
}

// Join implements cluster.Table.
func (m *MemoryTable) Join(_ context.Context, n cluster.Node) error {
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
func (m *MemoryTable) Beat(_ context.Context, s cluster.Step) (cluster.View, error) {
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

func (m *MemoryTable) applyChanges(s cluster.Step) {
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

func (m *MemoryTable) setOwner(shard cluster.Shard, n cluster.NodeID) {
	m.leases[shard] = cluster.Lease{Shard: shard, Owner: n, Epoch: m.epoch}
}

func (m *MemoryTable) view(known cluster.Epoch) cluster.View {
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
func (m *MemoryTable) Lease(shard cluster.Shard) cluster.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases[shard]
}

// Beats returns the number of beats of a node, or 0 if it is not a member.
func (m *MemoryTable) Beats(n cluster.NodeID) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes[n].Beats
}
