package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// lookEvery is how often a node checks whether it owns the shard of work that runs once.
const lookEvery = 200 * time.Millisecond

// RunOnce runs work of the whole service that one node does at a time, until ctx ends. That node is the owner of the
// service's own shard. The work is started when this node becomes the owner, and its context ends when ownership does. The
// work must be safe if two nodes do it.
func (n *Node) RunOnce(ctx context.Context, work func(context.Context)) {
	if n == nil {
		work(ctx)
		return
	}
	for ctx.Err() == nil {
		if !n.awaitService(ctx, true) {
			return
		}
		owned, end := context.WithCancel(ctx)
		var group sync.WaitGroup
		group.Go(func() {
			n.awaitService(owned, false)
			end()
		})
		work(owned)
		<-owned.Done() // work that has returned is not restarted until the shard moves
		end()
		group.Wait()
	}
}

// awaitService returns true once this node owns the service's shard, or once it does not, and false if ctx ends first.
func (n *Node) awaitService(ctx context.Context, mine bool) bool {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		o := n.Owner(id.Service)
		if o.Mine == mine {
			return true
		}
		select {
		case <-o.Changed:
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
