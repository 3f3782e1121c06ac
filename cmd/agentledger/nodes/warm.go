package nodes

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/storage/warm"
)

const (
	// warmEvery is how often the connections to the database are used. Idle ones are closed after half an hour, and all
	// after an hour, so most new ones are used once before a request needs them.
	warmEvery = 5 * time.Minute

	// warmTime bounds the first use, for which a node that is not alone waits before it first owns organizations.
	warmTime = 2 * time.Second
)

// prepare gets the node ready to own organizations: it has the anchors of the others, and its connections are used to
// what a take-over asks. Otherwise the organizations that it is given would stand until both is done.
func (n *Node) prepare(ctx context.Context, others []cluster.Node) error {
	if len(others) > 0 && !n.warmed.Swap(true) {
		ctx, cancel := context.WithTimeout(ctx, warmTime)
		defer cancel()
		warm.Use(ctx, n.options.Engine)
	}
	return n.fetchAnchors(ctx, others)
}

// keepWarm uses the connections to the database now and then, until ctx ends.
func (n *Node) keepWarm(ctx context.Context) {
	for wait.For(ctx, warmEvery) == nil {
		warm.Use(ctx, n.options.Engine)
	}
}
