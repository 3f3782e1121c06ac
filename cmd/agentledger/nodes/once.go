package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// lookEvery is how often a node looks whether it still owns the shard of work that runs once.
const lookEvery = 200 * time.Millisecond

// RunOnce does the work of the whole service that one node does at a time, until ctx ends: the owner of the shard
// that the service itself is in. The work is begun anew when it comes to this node, and its context ends when it
// goes. It MUST be safe when two nodes do it.
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
		<-owned.Done() // work that ended by itself is over until the shard goes
		end()
		group.Wait()
	}
}

// awaitService returns true once the service's shard is this node's, or is not, and false when ctx ends before.
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
