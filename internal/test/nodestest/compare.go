package nodestest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

// CompareTables takes random steps of random nodes on a new table and on a MemoryTable, and fails the test if their
// results differ. The table must have cluster.Shards leases.
func CompareTables(t *testing.T, table cluster.Table, seed uint64, steps int) {
	t.Helper()
	c := &comparison{t: t, random: rand.New(rand.NewPCG(seed, 5)), table: table, memory: NewMemoryTable(cluster.Shards)}
	for range 4 {
		c.join()
	}
	for i := range steps {
		if c.random.IntN(10) == 0 {
			c.join()
		}
		if c.beat(); t.Failed() {
			t.Fatalf("seed %d, step %d", seed, i)
		}
	}
}

// comparison is one run. It has few nodes and few shards, so that they often affect each other.
type comparison struct {
	t      *testing.T
	random *rand.Rand
	table  cluster.Table
	memory *MemoryTable
	nodes  []cluster.NodeID // including those that have left
}

func (c *comparison) join() {
	c.t.Helper()
	n := cluster.Node{URL: "https://node:1", Version: "1.2.3", Key: "k\x00é", Protocol: 3,
		Leaving: c.random.IntN(2) == 0}
	for i := range n.ID {
		n.ID[i] = byte(c.random.Uint32())
	}
	c.nodes = append(c.nodes, n.ID)
	if got, want := c.table.Join(c.t.Context(), n), c.memory.Join(c.t.Context(), n); got != nil || want != nil {
		c.t.Fatalf("join: got %v, want %v", got, want)
	}
	if got := c.table.Join(c.t.Context(), n); got == nil {
		c.t.Error("a node joined twice")
	}
}

func (c *comparison) node() cluster.NodeID {
	recent := c.nodes[max(0, len(c.nodes)-6):]
	return recent[c.random.IntN(len(recent))]
}

func (c *comparison) shard() cluster.Shard { return cluster.Shard(c.random.IntN(6)) }

// step is one that a node could take, often in vain.
func (c *comparison) step() cluster.Step {
	s := cluster.Step{Node: c.node(), Leaving: c.random.IntN(4) == 0, Leave: c.random.IntN(40) == 0}
	s.Known = cluster.Epoch(c.random.IntN(int(c.memory.epoch) + 1))
	if c.random.IntN(50) == 0 {
		s.Known = c.memory.epoch + 1
	}
	if c.random.IntN(4) == 0 {
		n := c.node()
		s.Forget = append(s.Forget, cluster.Sighting{Node: n, Beats: c.memory.Beats(n) - uint64(c.random.IntN(2))})
	}
	seen := map[cluster.Shard]bool{}
	for range c.random.IntN(4) {
		shard := c.shard()
		if seen[shard] {
			continue
		}
		seen[shard] = true
		switch l := c.memory.Lease(shard); c.random.IntN(4) {
		case 0:
			s.Take = append(s.Take, shard)
		case 1:
			l.Epoch--
			s.Give = append(s.Give, cluster.Gift{Lease: l, To: c.node()})
		default:
			s.Give = append(s.Give, cluster.Gift{Lease: l, To: c.node()})
		}
	}
	return s
}

func (c *comparison) beat() {
	c.t.Helper()
	s := c.step()
	got, gotErr := c.table.Beat(c.t.Context(), s)
	want, wantErr := c.memory.Beat(c.t.Context(), s)
	if !errors.Is(gotErr, wantErr) {
		c.t.Errorf("%+v: got error %v, want %v", s, gotErr, wantErr)
	}
	if got, want = sortView(got), sortView(want); !reflect.DeepEqual(got, want) {
		c.t.Errorf("%+v: got %+v, want %+v", s, got, want)
	}
}

// sortView returns a view in a form that can be compared, without the time.
func sortView(v cluster.View) cluster.View {
	slices.SortFunc(v.Nodes, func(a, b cluster.Node) int { return slices.Compare(a.ID[:], b.ID[:]) })
	slices.SortFunc(v.Leases, func(a, b cluster.Lease) int { return cmp.Compare(a.Shard, b.Shard) })
	if len(v.Leases) == 0 {
		v.Leases = nil
	}
	v.Time = time.Time{}
	return v
}
