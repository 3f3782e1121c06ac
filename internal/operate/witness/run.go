package witness

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/log"
)

// Run follows the ledgers and asks the witnesses until ctx ends; then it waits for
// the rounds that are under way. It is called once.
func (w *Witnesses) Run(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	moves := w.Ledgers.Moves()
	under.Go(func() { w.sweep(ctx) })
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-moves.Ready():
			w.follow(moves)
		case <-w.agenda.changed:
		case <-alarm.C:
		}
		now := w.Clock()
		rounds, next := w.agenda.begin(now)
		for _, e := range rounds {
			line := lineOf(e)
			under.Go(func() {
				began := w.Clock()
				next := w.round(ctx, e)
				w.agenda.end(e, line, next, began.Add(w.Interval))
			})
		}
		if !next.IsZero() {
			alarm.Reset(max(next.Sub(now), time.Millisecond))
		}
	}
}

// follow puts the ledgers that moved on the agenda.
func (w *Witnesses) follow(m *log.Moves) {
	now := w.Clock()
	for _, t := range m.Take() {
		w.agenda.add(t, now)
	}
}
