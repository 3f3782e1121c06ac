package witness

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// sweepRepeatedly periodically sweeps over all ledgers. A sweep finds ledgers whose latest checkpoint lacks
// cosignatures and that are not queued: after a start, after an overflow of the queue, and at the end of a pause. It
// also schedules the quiet ledgers.
func (w *Witnesses) sweepRepeatedly(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Error("sweep over ledgers for witnesses failed", "err", err)
		}
		if syncs.Sleep(ctx, w.Sweep) != nil {
			return
		}
	}
}

// sweepPause is the time after which a sweep tries again if the queue is full.
const sweepPause = 100 * time.Millisecond

func (w *Witnesses) sweepOnce(ctx context.Context) error {
	var found sweepFindings
	query := storage.SurveyQuestion{Kinds: []storage.Kind{org.Kind, kindWitnessed}}
	for l, err := range storage.Survey(ctx, w.Store, query) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		t := l.Tenant
		due, at, err := w.isLedgerDue(ctx, l)
		if err != nil && ctx.Err() == nil {
			w.Logger.Error("ledger not examined for witnesses", "tenant", t, "err", err)
			continue
		}
		if !at.IsZero() {
			w.queue.enqueuePaused(t, at)
		}
		found.note(w, l, w.Clock())
		if !due {
			continue
		}
		for !w.queue.hasSweepCapacity() {
			if syncs.Sleep(ctx, sweepPause) != nil {
				return nil
			}
		}
		w.queue.enqueueMoved(t, w.Clock())
	}
	w.oldest.Store(int64(w.oldestConfirmed(ctx, found)))
	w.scheduleQuiet(found.quiet)
	return nil
}

// isLedgerDue reports whether a witness must be called for a ledger, without loading the ledger. Otherwise at is the
// end of the first pause, or zero if there is none.
func (w *Witnesses) isLedgerDue(ctx context.Context, l storage.SurveyedLedger) (is bool, at time.Time, err error) {
	f, err := w.policyFor(l)
	if f == nil || l.Head.Size == 0 || err != nil {
		return false, at, err
	}
	p := w.recordIn(l.Tenant, l.Values[kindWitnessed])
	p.applyPolicy(f)
	if confirms, err := w.needsConfirmation(ctx, l.Tenant); confirms || err != nil {
		return confirms, at, err
	}
	var newest tlog.Checkpoint // at the size of the head, if it is cosigned
	if p.newest.treeSize() == l.Head.Size {
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

// policyFor returns the current policy of a ledger, or nil if there is no organization or no witness.
func (w *Witnesses) policyFor(l storage.SurveyedLedger) (*activePolicy, error) {
	setting, found, err := org.WitnessingIn(l.Values[org.Kind])
	if err = errors.Join(l.Err, err); !found || err != nil {
		return nil, err
	}
	f, err := w.currentPolicy(l.Tenant, setting)
	if err != nil || len(f.targets) == 0 {
		return nil, err
	}
	return f, nil
}
