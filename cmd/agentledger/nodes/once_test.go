package nodes_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/cmd/agentledger/nodes"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/test/nodestest"
)

// idle holds no organizations.
type idle struct{}

func (idle) Release(context.Context, []cluster.Shard) {}

// joinMemory starts a node with a node table in memory. stop makes it leave.
func joinMemory(t *testing.T, table *nodestest.MemoryTable) (n *nodes.Node, stop func()) {
	t.Helper()
	began := time.Now()
	c := cluster.New(cluster.Options{Table: table, Holder: idle{}, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Duration { return time.Since(began) }, Node: cluster.Node{URL: "https://node.example",
			Version: "v", Key: "k", Protocol: cluster.Protocol}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return nodes.Of(c), func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Only the owner of the service's shard does the work of the whole service, and the next owner continues it.
func TestRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := nodestest.NewMemoryTable(cluster.Shards)
		var members []*nodes.Node
		var stops []func()
		for range 2 {
			n, stop := joinMemory(t, table)
			members, stops = append(members, n), append(stops, stop)
		}
		time.Sleep(10 * time.Second)
		var works [2]atomic.Int32
		ctx, end := context.WithCancel(t.Context())
		for i, n := range members {
			go n.RunOnce(ctx, func(owned context.Context) {
				works[i].Add(1)
				<-owned.Done()
				works[i].Add(-1)
			})
		}
		time.Sleep(time.Second)
		owner := 0
		if members[1].Owned(id.Service) {
			owner = 1
		}
		if works[owner].Load() != 1 || works[1-owner].Load() != 0 {
			t.Errorf("the owner runs %d tasks and the other node %d, want 1 and 0", works[owner].Load(), works[1-owner].Load())
		}
		stops[owner]()
		time.Sleep(time.Second)
		if works[owner].Load() != 0 || works[1-owner].Load() != 1 {
			t.Errorf("after the owner left, it runs %d tasks and the other node %d, want 0 and 1", works[owner].Load(), works[1-owner].Load())
		}
		end()
		stops[1-owner]()
		synctest.Wait()
		if works[0].Load()+works[1].Load() != 0 {
			t.Error("the work continues after the end")
		}
	})
	var alone *nodes.Node
	ran := 0
	if alone.RunOnce(t.Context(), func(context.Context) { ran++ }); ran != 1 {
		t.Errorf("a process that serves alone has run the work %d times", ran)
	}
}
