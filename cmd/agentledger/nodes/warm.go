package nodes

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage/pgstore"
)

const (
	// warmEvery is how often the connections to the database are used. Idle ones are closed after half an hour, and all
	// after an hour, so most new ones are used once before a request needs them.
	warmEvery = 5 * time.Minute

	// warmTime bounds the first use, for which a node waits before it takes requests.
	warmTime = 2 * time.Second
)

// Warm uses the connections to the database, before the node takes requests and joins the others. Otherwise requests,
// and the organizations that it is given, would wait until each connection is open and has prepared its statements.
func (n *Node) Warm(ctx context.Context) {
	if n == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	pgstore.Warm(ctx, n.options.Engine)
}

// keepWarm uses the connections to the database now and then, until ctx ends.
func (n *Node) keepWarm(ctx context.Context) {
	for syncs.Sleep(ctx, warmEvery) == nil {
		pgstore.Warm(ctx, n.options.Engine)
	}
}
