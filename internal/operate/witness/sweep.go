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

// sweepRepeatedly sweeps over all ledgers, again and again. A sweep finds ledgers whose newest checkpoint lacks
// cosignatures and that are not queued: after a start, after an overflow of the queue, and at the end of a pause.
func (w *Witnesses) sweepRepeatedly(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Error("ledgers not looked at for witnesses", "err", err)
		}
		if wait.For(ctx, w.Sweep) != nil {
			return
		}
	}
}

// sweepPause is the time that a sweep waits for room in the queue before it tries again.
const sweepPause = 100 * time.Millisecond

func (w *Witnesses) sweepOnce(ctx context.Context) error {
	for t, err := range w.Store.Tenants(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		due, at, err := w.isLedgerDue(ctx, t)
		if err != nil && ctx.Err() == nil {
			w.Logger.Error("ledger not looked at for witnesses", "tenant", t, "err", err)
			continue
		}
		if !at.IsZero() {
			w.queue.enqueuePaused(t, at)
		}
		if !due {
			continue
		}
		for !w.queue.hasRoomForSweep() {
			if wait.For(ctx, sweepPause) != nil {
				return nil
			}
		}
		w.queue.enqueueMoved(t, w.Clock())
	}
	return nil
}

// isLedgerDue reports whether a witness is to be asked about a ledger, without loading the ledger. Otherwise at is
// the end of the first pause, or zero for none.
func (w *Witnesses) isLedgerDue(ctx context.Context, t id.Tenant) (is bool, at time.Time, err error) {
	f, size, err := w.policyAndHeadSize(ctx, t)
	if err != nil || size == 0 {
		return false, at, err
	}
	p, err := w.readRecord(ctx, t)
	if err != nil {
		return false, at, err
	}
	p.applyPolicy(f)
	if confirms, err := w.needsConfirmation(ctx, t); confirms || err != nil {
		return confirms, at, err
	}
	var newest tlog.Checkpoint // at the size of the head, if it is cosigned
	if p.newest.treeSize() == size {
		newest = p.newest.checkpoint
	}
	for _, e := range f.endpoints {
		due, end := p.submissionDue(e, newest, w.Clock())
		if due {
			return true, time.Time{}, nil
		}
		at = earlierTime(at, end)
	}
	return false, at, nil
}

// policyAndHeadSize returns the policy in force for a ledger and the size of its head. The size is 0 when there is no
// head, no organization, or no witness.
func (w *Witnesses) policyAndHeadSize(ctx context.Context, t id.Tenant) (*activePolicy, id.Index, error) {
	wanted, err := w.Organizations.Witnessing(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := w.policyInForce(t, wanted)
	if err != nil || len(f.targets) == 0 {
		return nil, 0, err
	}
	head, err := w.Store.Head(ctx, t)
	if errors.Is(err, storage.ErrNotFound) {
		return f, 0, nil
	}
	return f, head.Size, err
}
