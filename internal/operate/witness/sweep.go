package witness

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// sweep finds the ledgers whose newest checkpoint is not cosigned as it should be
// and that nobody remembers: after a start, after an overflow of the agenda, and
// when a refusal is over. It looks at all ledgers, again and again.
func (w *Witnesses) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Error("ledgers not looked at for witnesses", "err", err)
		}
		if wait.For(ctx, w.Sweep) != nil {
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
			if wait.For(ctx, sweepPause) != nil {
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
	f, size, err := w.shownTo(ctx, t)
	if err != nil || size == 0 {
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
	var newest tlog.Checkpoint // of the size of the head, as far as one is cosigned
	if p.newest.size() == size {
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

// shownTo returns what is in force for a ledger and the size of its head, which is 0
// when there is none, no organization has it, or nobody is asked.
func (w *Witnesses) shownTo(ctx context.Context, t id.Tenant) (*force, id.Index, error) {
	wanted, err := w.Organizations.Witnessing(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := w.inForce(t, wanted)
	if err != nil || len(f.targets) == 0 {
		return nil, 0, err
	}
	head, err := w.Store.Head(ctx, t)
	if errors.Is(err, storage.ErrNotFound) {
		return f, 0, nil
	}
	return f, head.Size, err
}
