package witness

import (
	"context"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// confirmTime bounds how long the first event of a loaded ledger waits for witnesses.
const confirmTime = 2 * time.Second

// Confirm submits the head of s to all witnesses of a ledger, including those whose cosignature is stored, because
// the store may be an older copy. A witness that has seen a larger or a different tree freezes the ledger. The
// ledgers call it before the first event after a ledger was loaded (log.Witness). The event proceeds after two
// seconds, or if a witness fails to respond. The next round then finds a contradiction.
func (w *Witnesses) Confirm(ctx context.Context, s *log.State) {
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	leave, err := w.rounds.Lock(ctx, s.Identity().Tenant)
	if err == nil {
		defer leave()
		err = w.confirmHeadNow(ctx, s)
	}
	if err != nil {
		w.Logger.Warn("head not confirmed by witnesses before the first event", "origin", s.Identity().Origin, "err", err)
	}
}

func (w *Witnesses) confirmHeadNow(ctx context.Context, s *log.State) error {
	t := s.Identity().Tenant
	setting, err := w.Organizations.Witnessing(ctx, t)
	if err != nil {
		return err
	}
	r := &round{w: w, state: s}
	if r.active, err = w.currentPolicy(t, setting); err != nil || len(r.active.targets) == 0 {
		return err
	}
	if r.record, err = w.readRecord(ctx, t); err != nil {
		return err
	}
	r.record.applyPolicy(r.active)
	now := id.InstantOf(w.Clock())
	for _, e := range r.active.endpoints {
		if r.record.mayBeCalled(e, now) {
			r.submissions = append(r.submissions, r.newSubmission(e).startAtHeadSize())
		}
	}
	r.submitToAll(ctx)
	return ctx.Err()
}

// mayBeCalled reports whether the endpoint's witness is not paused for the ledger.
func (p *ledgerRecord) mayBeCalled(e *endpoint, now id.Instant) bool {
	return slices.ContainsFunc(e.targets, func(t *target) bool { return p.hintOrZero(t.Key).Until <= now })
}

// startAtHeadSize makes the submission start with the size of the head as the old size if the witness has cosigned
// the ledger. A witness with another size then responds with its size.
func (a *submission) startAtHeadSize() *submission {
	if a.old > 0 && a.old != a.shown.Size {
		a.old, a.guessed = a.shown.Size, true
	}
	return a
}
