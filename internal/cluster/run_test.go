package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/test/nodestest"
)

// group is a group of nodes that share a table.
type group struct {
	t     *testing.T
	table *nodestest.MemoryTable
	began time.Time
	nodes []*node // written only by the test, under adding

	adding  sync.Mutex
	unready error // of nodes that are added
}

// node is a node of a group, and also the table that it uses.
type node struct {
	*group
	*cluster.Cluster
	stop context.CancelFunc
	done chan error

	mu       sync.Mutex
	dead     bool
	unready  error // of Prepare
	unfit    bool
	released map[cluster.Shard]int
}

func (n *node) Join(ctx context.Context, m cluster.Node) error {
	if n.isDead() {
		return errors.New("unreachable")
	}
	if !m.Leaving {
		n.t.Error("a node that is not prepared joins as one that gets shards")
	}
	return n.table.Join(ctx, m)
}

func (n *node) Beat(ctx context.Context, s cluster.Step) (cluster.View, error) {
	if n.isDead() {
		return cluster.View{}, errors.New("unreachable")
	}
	time.Sleep(time.Millisecond)
	return n.table.Beat(ctx, s)
}

func (n *node) prepare(ctx context.Context, others []cluster.Node) error {
	for _, o := range others {
		if o.ID == n.Self().ID {
			n.t.Error("a node is told of itself")
		}
	}
	n.mu.Lock()
	unready := n.unready
	n.mu.Unlock()
	if errors.Is(unready, errHangs) {
		<-ctx.Done()
	}
	return unready
}

// errHangs makes Prepare wait for the end of its context.
var errHangs = errors.New("another node does not answer")

func (n *node) setUnready(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unready = err
}

func (n *node) isFit() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.unfit
}

func (n *node) setUnfit(unfit bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unfit = unfit
}

func (n *node) isDead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}

func (n *node) setDead(dead bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = dead
}

func (n *node) Release(_ context.Context, shards []cluster.Shard) {
	time.Sleep(20 * time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range shards {
		n.released[s]++
	}
}

func (g *group) add(url string) *node {
	n := &node{group: g, done: make(chan error, 1), released: map[cluster.Shard]int{}, unready: g.unready}
	n.Cluster = cluster.New(cluster.Options{Table: n, Node: cluster.Node{URL: url}, Holder: n,
		Logger:  slog.New(slog.DiscardHandler),
		Clock:   func() time.Duration { return time.Since(g.began) },
		Prepare: n.prepare, Fit: n.isFit,
		Tell: func(others []cluster.Node, news cluster.News) {
			g.adding.Lock()
			nodes := g.nodes
			g.adding.Unlock()
			for _, m := range nodes {
				if slices.ContainsFunc(others, func(o cluster.Node) bool { return o.ID == m.Self().ID }) {
					m.Hear(news)
				}
			}
		}})
	ctx, stop := context.WithCancel(g.t.Context())
	n.stop = stop
	g.adding.Lock()
	g.nodes = append(g.nodes, n)
	g.adding.Unlock()
	go func() {
		n.done <- n.Run(ctx)
		close(n.done)
	}()
	return n
}

// owners returns the number of the node that owns each shard, or -1.
func (g *group) owners() []int {
	all := make([]int, cluster.Shards)
	for shard := range all {
		all[shard] = -1
		for i, n := range g.nodes {
			if n.Owner(id.Tenant(shard)).Mine {
				if all[shard] >= 0 {
					g.t.Fatalf("shard %d has two owners", shard)
				}
				all[shard] = i
			}
		}
	}
	return all
}

func count(owners []int, n int) (found int) {
	for _, o := range owners {
		if o == n {
			found++
		}
	}
	return found
}

// A node that cannot serve gives its shards away. The last node keeps its shards, and a node that can serve takes them.
func TestUnfitNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		defer g.end()
		a, b := g.add("a"), g.add("b")
		time.Sleep(2 * time.Second)
		before := count(g.owners(), 0)
		if before == 0 || before == cluster.Shards {
			t.Fatalf("one of two nodes owns %d shards", before)
		}
		for _, step := range []struct {
			name           string
			unfitA, unfitB bool
			wantA, wantB   int
		}{
			{"one can't", true, false, 0, cluster.Shards},
			{"none can", true, true, 0, cluster.Shards},
			{"the other one can", false, true, cluster.Shards, 0},
			{"none can again", true, true, cluster.Shards, 0},
			{"both can", false, false, before, cluster.Shards - before},
		} {
			a.setUnfit(step.unfitA)
			b.setUnfit(step.unfitB)
			time.Sleep(2 * time.Second)
			owners := g.owners()
			if gotA, gotB := count(owners, 0), count(owners, 1); gotA != step.wantA || gotB != step.wantB {
				t.Errorf("%s: the nodes own %d and %d, want %d and %d", step.name, gotA, gotB, step.wantA, step.wantB)
			}
		}
	})
}

func TestNodesShareTheOrganizations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		first := g.add("a")
		time.Sleep(100 * time.Millisecond)
		if got := count(g.owners(), 0); got != cluster.Shards || first.OwnedShards() != got {
			t.Fatalf("one node owns %d shards, by itself %d, want all", got, first.OwnedShards())
		}
		if age := first.BeatAge(); age <= 0 || age > 500*time.Millisecond {
			t.Errorf("the newest beat is %v old", age)
		}
		g.add("b")
		third := g.add("c")
		time.Sleep(2 * time.Second)
		before := g.owners()
		for n := range 3 {
			if got := count(before, n); got < 250 || got > 430 {
				t.Errorf("node %d of 3 owns %d shards", n, got)
			}
		}
		if at := first.Owner(id.Tenant(slices.Index(before, 2))); at.Mine || at.Node.URL != "c" {
			t.Errorf("the first node says that %q owns a shard of the third, by itself %t", at.Node.URL, at.Mine)
		}
		third.stop()
		if err := <-third.done; err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Millisecond) // a beat of the notified nodes
		after := g.owners()
		if got := count(after, -1); got != 0 {
			t.Errorf("%d shards have no owner right after a node left", got)
		}
		if moved := countMoved(before, after, 2); moved != 0 {
			t.Errorf("%d shards moved between nodes that stayed", moved)
		}
		if got := len(third.released); got != count(before, 2) {
			t.Errorf("the third node released %d shards, want its %d", got, count(before, 2))
		}
		g.end()
	})
}

// countMoved counts the shards whose owner changed, except for those of one node.
func countMoved(before, after []int, but int) (moved int) {
	for i := range before {
		if before[i] != after[i] && before[i] != but {
			moved++
		}
	}
	return moved
}

func TestDeadNodeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.add("a")
		second := g.add("b")
		time.Sleep(3 * time.Second)
		before := g.owners()
		second.setDead(true)
		time.Sleep(1600 * time.Millisecond)
		if got := count(g.owners(), 1); got != 0 {
			t.Errorf("a node that is cut off owns %d shards", got)
		}
		time.Sleep(950 * time.Millisecond)
		if got := count(g.owners(), 0); got != cluster.Shards {
			t.Errorf("the other node owns %d shards 2.55 s later, want all", got)
		}
		gains := second.Gains()
		second.setDead(false)
		time.Sleep(3 * time.Second)
		if got := g.owners(); count(got, 0)+count(got, 1) != cluster.Shards || count(got, 1) < 350 {
			t.Errorf("with the node back the two own %d and %d shards", count(got, 0), count(got, 1))
		}
		if second.Gains() == gains {
			t.Error("a node that came back has no gains")
		}
		if got, want := len(second.released), count(before, 1); got < want {
			t.Errorf("the node released %d shards, want its %d", got, want)
		}
		g.end()
	})
}

// A node owns nothing before it is prepared, and the others serve in the meantime.
func TestNodePreparesBeforeItOwns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.add("a")
		time.Sleep(time.Second)
		g.unready = errors.New("anchors are missing")
		second := g.add("b")
		time.Sleep(5 * time.Second)
		if got := g.owners(); count(got, 0) != cluster.Shards {
			t.Errorf("the first node owns %d shards, want all", count(got, 0))
		}
		second.setUnready(nil)
		time.Sleep(2 * time.Second)
		if got := g.owners(); count(got, 0)+count(got, 1) != cluster.Shards || count(got, 1) < 400 {
			t.Errorf("the nodes own %d and %d shards", count(got, 0), count(got, 1))
		}
		g.end()
	})
}

// A node that was forgotten before it was prepared joins again, and prepares with the current members.
func TestNodeIsForgottenWhileItPrepares(t *testing.T) {
	for _, unready := range []error{errors.New("anchors are missing"), errHangs} {
		synctest.Test(t, func(t *testing.T) { forgetUnprepared(t, unready) })
	}
}

func forgetUnprepared(t *testing.T, unready error) {
	g := newGroup(t)
	g.add("a")
	time.Sleep(time.Second)
	g.unready = unready
	second := g.add("b")
	time.Sleep(2 * time.Second)
	before := second.Self().ID
	second.setDead(true)
	second.setUnready(errors.New("anchors are missing")) // of the next call
	time.Sleep(3 * time.Second)
	second.setDead(false)
	time.Sleep(3 * time.Second)
	if second.Self().ID == before {
		t.Fatal("the node did not join anew")
	}
	second.setUnready(nil)
	time.Sleep(2 * time.Second)
	if got := count(g.owners(), 1); got < 400 {
		t.Errorf("the node owns %d shards", got)
	}
	g.end()
}

// A waiting request learns of the next owner without polling.
func TestChangedOwnerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		n := g.add("a")
		at := n.Owner(7)
		for began := time.Now(); !at.Mine; at = n.Owner(7) {
			select {
			case <-at.Changed:
			case <-time.After(time.Second):
				t.Fatalf("no view in a second; %v since the start", time.Since(began))
			}
		}
		if all := n.Nodes(); len(all) != 1 || all[0].URL != "a" {
			t.Errorf("got the nodes %v", all)
		}
		g.end()
	})
}

// A node that has left notifies those who wait for another owner, and still returns the last owners that it knew.
func TestNodeThatHasLeftTellsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		a, b := g.add("a"), g.add("b")
		time.Sleep(5 * time.Second)
		before := a.Owner(7)
		if before.Left {
			t.Error("a node that is there has left")
		}
		g.end()
		<-before.Changed
		if at := a.Owner(7); !at.Left || at.Mine || !b.Owner(7).Left {
			t.Errorf("got left %v, mine %v", at.Left, at.Mine)
		}
	})
}

func newGroup(t *testing.T) *group {
	return &group{t: t, table: nodestest.NewMemoryTable(cluster.Shards), began: time.Now()}
}

func (g *group) end() {
	for _, n := range g.nodes {
		n.stop()
		if err := <-n.done; err != nil {
			g.t.Error(err)
		}
	}
}
