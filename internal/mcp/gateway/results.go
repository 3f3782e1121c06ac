package gateway

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/internal/syncs"
)

// flushPause is the pause after results could not be sent.
const flushPause = 5 * time.Second

// SendResults sends the results of calls until ctx ends, those of earlier runs first. It is for one goroutine.
// Calls don't wait for it, because their results are in the journal.
func (g *Gateway) SendResults(ctx context.Context) {
	for {
		if err := g.Flush(ctx); err != nil && ctx.Err() == nil {
			g.OnError(err)
			if syncs.Sleep(ctx, flushPause) != nil {
				return
			}
			continue
		}
		var again <-chan time.Time
		if g.Journal.Queued() > 0 { // calls that the service is asked about later
			again = time.After(flushPause)
		}
		select {
		case <-g.wake:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

func (g *Gateway) wakeFlusher() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Flush sends the results that are in the journal. Errors are those of guard.Guard.Flush.
func (g *Gateway) Flush(ctx context.Context) error {
	results, err := g.newResults()
	if err != nil {
		return err
	}
	return results.Flush(ctx)
}

// RecordInterrupted records the calls that an earlier run left in the middle as unknown. Call it before the
// first session.
func (g *Gateway) RecordInterrupted(ctx context.Context) error {
	results, err := g.newResults()
	if err != nil {
		return err
	}
	return results.RecordInterrupted(ctx)
}

func (g *Gateway) newResults() (*guard.Guard, error) {
	return guard.New(guard.Config{Client: g.Client, Signer: g.Signer, Journal: g.Journal})
}
