package pgstore_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/clustertest"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/nodetable"
)

func TestNodesAnswerAsInMemory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		e := open(t, pgstore.Options{URL: fresh(t, shared)})
		clustertest.Compare(t, nodetable.New(e), seed, 150)
		closeEngine(t, e)
	}
}

// nothingHeld holds no state.
type nothingHeld struct{}

func (nothingHeld) Release(context.Context, []cluster.Shard) {}

// Nodes with pools of their own share the shards of a database. One of them stops, and the others have all.
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
