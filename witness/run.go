package witness

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
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

// sweep finds the ledgers whose newest checkpoint is not cosigned as it should be
// and that nobody remembers: after a start, after an overflow of the agenda, and
// when a refusal is over. It looks at all ledgers, again and again.
func (w *Witnesses) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Error("ledgers not looked at for witnesses", "err", err)
		}
		if !sleep(ctx, w.Sweep) {
			return
		}
	}
}

// sweepPause is how long a sweep waits for room on the agenda before it looks again.
const sweepPause = 100 * time.Millisecond

func (w *Witnesses) sweepOnce(ctx context.Context) error {
	for t, err := range w.Store.Tenants(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		due, at, err := w.isDue(ctx, t)
		if err != nil && ctx.Err() == nil {
			w.Logger.Error("ledger not looked at for witnesses", "tenant", t, "err", err)
			continue
		}
		if !at.IsZero() {
			w.agenda.addPaused(t, at)
		}
		if !due {
			continue
		}
		for !w.agenda.hasRoom() {
			if !sleep(ctx, sweepPause) {
				return nil
			}
		}
		w.agenda.add(t, w.Clock())
	}
	return nil
}

// isDue reports whether somebody is to be asked about a ledger, without loading it, or
// else when a pause ends after which somebody is; the zero time for not at all.
func (w *Witnesses) isDue(ctx context.Context, t id.Tenant) (is bool, at time.Time, err error) {
	wanted, err := w.Organizations.Witnessing(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return false, at, nil
	}
	if err != nil {
		return false, at, err
	}
	f, err := w.inForce(t, wanted)
	if err != nil || len(f.targets) == 0 {
		return false, at, err
	}
	head, err := w.Store.Head(ctx, t)
	if errors.Is(err, storage.ErrNotFound) || head.Size == 0 {
		return false, at, nil
	}
	if err != nil {
		return false, at, err
	}
	p, err := w.read(ctx, t)
	if err != nil {
		return false, at, err
	}
	p.fit(f)
	if confirms, err := w.confirming(ctx, t); confirms || err != nil {
		return confirms, at, err
	}
	var newest tlog.Checkpoint // what the head is not compared with, because only its size is known to be signed
	if p.newest.size() == head.Size {
		newest = p.newest.checkpoint
	}
	for _, e := range f.endpoints {
		due, end := p.due(e, newest, w.Clock())
		if due {
			return true, time.Time{}, nil
		}
		at = earlier(at, end)
	}
	return false, at, nil
}
