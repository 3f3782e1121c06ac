package witness

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
)

// Run follows the ledgers and runs the rounds until ctx ends, and then waits for the running rounds. It must be
// called only once.
func (w *Witnesses) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	moves := w.Ledgers.Moves()
	wg.Go(func() { w.sweepRepeatedly(ctx) })
	wg.Go(func() { w.refreshRepeatedly(ctx) })
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-moves.Ready():
			w.enqueueMoves(moves)
		case <-w.queue.changed:
		case <-alarm.C:
		}
		now := w.Clock()
		rounds, next := w.queue.takeDueRounds(now)
		for _, e := range rounds {
			line := readyQueueIndex(e)
			wg.Go(func() {
				began := w.Clock()
				next := w.runRound(ctx, e)
				w.queue.finishRound(e, line, next, began.Add(w.Interval))
			})
		}
		if !next.IsZero() {
			alarm.Reset(max(next.Sub(now), time.Millisecond))
		}
	}
}

// enqueueMoves adds the ledgers that moved to the queue.
func (w *Witnesses) enqueueMoves(m *syncs.Inbox[id.Tenant]) {
	now := w.Clock()
	moved, _ := m.Take()
	for _, t := range moved {
		w.queue.enqueueMoved(t, now)
	}
}
