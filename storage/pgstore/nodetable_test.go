package pgstore_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/test/nodestest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/nodetable"
)

func TestNodesAnswerAsInMemory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		e := open(t, pgstore.Options{URL: fresh(t, shared)})
		nodestest.CompareTables(t, patient{nodetable.New(e)}, seed, 150)
		closeEngine(t, e)
	}
}

// patient is a table that retries a step while nothing of it was applied. On a busy machine, the server may end a
// transaction because its node was silent for too long.
type patient struct{ cluster.Table }

func (p patient) Beat(ctx context.Context, s cluster.Step) (v cluster.View, err error) {
	const tries = 10
	for range tries {
		if v, err = p.Table.Beat(ctx, s); !errors.Is(err, storage.ErrUnavailable) {
			break
		}
	}
	return v, err
}

// nothingHeld has no state.
type nothingHeld struct{}

func (nothingHeld) Release(context.Context, []cluster.Shard) {}

// Nodes with separate pools share the shards of a database. If one of them stops, the others own everything.
func TestNodesOfOneDatabase(t *testing.T) {
	t.Parallel()
	url, began := fresh(t, shared), time.Now()
	var nodes []*cluster.Cluster
	var stops []func()
	for range 3 {
		e := open(t, pgstore.Options{URL: url})
		c := cluster.New(cluster.Options{Table: nodetable.New(e), Holder: nothingHeld{},
			Logger: slog.New(slog.DiscardHandler),
			Clock:  func() time.Duration { return time.Since(began) }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		nodes = append(nodes, c)
		stops = append(stops, func() {
			cancel()
			must(t, <-done)
			closeEngine(t, e)
		})
	}
	awaitOwners(t, nodes)
	stops[1]()
	awaitOwners(t, []*cluster.Cluster{nodes[0], nodes[2]})
	stops[0]()
	stops[2]()
}

// stalled is a database on which each transaction of a node stalls before its end.
type stalled struct {
	*pgstore.Engine
	begun chan struct{} // is closed when the transaction holds its locks
	end   chan struct{}
}

func (s *stalled) Transact(ctx context.Context, work func(pgx.Tx) error) error {
	return s.Engine.Transact(ctx, func(tx pgx.Tx) error {
		err := work(tx)
		close(s.begun)
		<-s.end
		return err
	})
}

// A node that is cut off during a beat holds the locks of its transaction. Another node can still forget it and take
// its shards.
func TestNodeThatIsCutOffInItsBeat(t *testing.T) {
	t.Parallel()
	e := open(t, pgstore.Options{URL: fresh(t, shared)})
	table, lost, other := nodetable.New(e), cluster.NewNodeID(), cluster.NewNodeID()
	for _, n := range []cluster.NodeID{lost, other} {
		must(t, table.Join(t.Context(), cluster.Node{ID: n}))
	}
	_, err := table.Beat(t.Context(), cluster.Step{Node: lost, Take: []cluster.Shard{7}})
	must(t, err)
	cut := &stalled{e, make(chan struct{}), make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := nodetable.New(cut).Beat(t.Context(), cluster.Step{Node: lost, Take: []cluster.Shard{8}})
		ended <- err
	}()
	<-cut.begun
	const tries = 8 // of a second and a half each
	for n := range tries {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		v, err := table.Beat(ctx, cluster.Step{Node: other, Forget: []cluster.Sighting{{Node: lost, Beats: 1}},
			Take: []cluster.Shard{7}})
		cancel()
		if err == nil {
			if len(v.Nodes) != 1 || len(v.Leases) != 1 || v.Leases[0].Owner != other || v.Time.IsZero() {
				t.Errorf("got %+v, want one node with the shard", v)
			}
			break
		}
		if n == tries-1 {
			t.Errorf("the node that is cut off is not forgotten: %v", err)
		}
	}
	close(cut.end)
	if err := <-ended; err == nil {
		t.Error("the beat of the node that was cut off had an effect")
	}
	closeEngine(t, e)
}

// counted counts the round trips to a database.
type counted struct {
	*pgstore.Engine
	sent, transacted int
}

func (c *counted) Send(ctx context.Context, statements *pgx.Batch) error {
	c.sent++
	return c.Engine.Send(ctx, statements)
}

func (c *counted) Transact(ctx context.Context, work func(pgx.Tx) error) error {
	c.transacted++
	return c.Engine.Transact(ctx, work)
}

// A beat without changes takes one round trip. The beat of a node that is not a member, or that knows more than the
// database, changes nothing.
func TestBeatIsSentWhole(t *testing.T) {
	t.Parallel()
	e := &counted{Engine: open(t, pgstore.Options{URL: fresh(t, shared)})}
	table, one, other := nodetable.New(e), cluster.NewNodeID(), cluster.NewNodeID()
	for _, n := range []cluster.NodeID{one, other} {
		must(t, table.Join(t.Context(), cluster.Node{ID: n}))
	}
	e.transacted = 0
	for _, s := range []cluster.Step{{Node: one, Known: 1 << 20}, {Node: cluster.NewNodeID()}} {
		if _, err := table.Beat(t.Context(), s); !errors.Is(err, cluster.ErrForgotten) {
			t.Errorf("%+v: got %v, want %v", s, err, cluster.ErrForgotten)
		}
	}
	v, err := table.Beat(t.Context(), cluster.Step{Node: one})
	must(t, err)
	for _, n := range v.Nodes {
		if want := map[cluster.NodeID]uint64{one: 1, other: 0}[n.ID]; n.Beats != want {
			t.Errorf("node %v: got %d beats, want %d", n.ID, n.Beats, want)
		}
	}
	if len(v.Nodes) != 2 || v.Time.IsZero() || e.sent != 3 || e.transacted != 0 {
		t.Errorf("got %+v by %d sends and %d transactions, want two nodes by three sends", v, e.sent, e.transacted)
	}
	closeEngine(t, e.Engine)
}

// awaitOwners waits until every shard has one owner, and every node has some.
func awaitOwners(t *testing.T, nodes []*cluster.Cluster) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		owned := make([]int, len(nodes))
		for shard := range cluster.Shards {
			for i, n := range nodes {
				if n.Owner(id.Tenant(shard)).Mine {
					owned[i]++
				}
			}
		}
		total, least := 0, cluster.Shards
		for _, n := range owned {
			total, least = total+n, min(least, n)
		}
		if total == cluster.Shards && least > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute later the nodes own %v shards", owned)
		}
	}
}
