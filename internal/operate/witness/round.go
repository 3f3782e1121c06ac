package witness

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/log"
)

// storeRest is the time until the next round of a ledger after an error of the store.
const storeRest = 30 * time.Second

// runRound submits the latest checkpoint of a ledger to each witness that has not cosigned it and is not paused. It
// returns the times of the next rounds if the ledger does not move.
func (w *Witnesses) runRound(ctx context.Context, e *queuedLedger) retryTimes {
	began := w.Clock()
	leave, err := w.rounds.Lock(ctx, e.tenant)
	if err != nil {
		return retryTimes{behind: began.Add(storeRest)}
	}
	defer leave()
	r, err := w.prepareRound(ctx, e)
	if fault.Is(err, fault.NotFound) || errors.Is(err, log.ErrNotOwner) {
		return retryTimes{}
	}
	if err != nil {
		if ctx.Err() == nil {
			w.Logger.Error("ledger not submitted to witnesses", "tenant", e.tenant, "err", err)
		}
		return retryTimes{behind: began.Add(storeRest)}
	}
	if r == nil || r.foreign {
		return retryTimes{}
	}
	if r.confirms {
		return r.confirmHead(ctx)
	}
	next, _ := r.submitToAll(ctx)
	if r.refreshes { // a renewal must not take capacity from ledgers that wait for witnesses
		return retryTimes{paused: earlierTime(next.behind, next.paused)}
	}
	return next
}

// submitToAll runs all submissions of the round concurrently. It returns the times of the next rounds, and the
// outcomes in the order of the submissions.
func (r *round) submitToAll(ctx context.Context) (next retryTimes, answers []outcome) {
	var running sync.WaitGroup
	answers = make([]outcome, len(r.submissions))
	times := make([]retryTimes, len(r.submissions))
	for i, a := range r.submissions {
		running.Go(func() { times[i], answers[i] = r.submitAndStore(ctx, a) })
	}
	running.Wait()
	next = r.retry
	for _, t := range times {
		next = next.combineEarliest(t)
	}
	return next, answers
}

// submitAndStore runs one submission, stores its outcome, and returns the times of the next rounds for it.
func (r *round) submitAndStore(ctx context.Context, a *submission) (retryTimes, outcome) {
	e := a.endpoint
	known := r.record.acknowledged(e) > 0
	answer := r.submitUntilNotBusy(ctx, a, known)
	now := r.w.Clock()
	r.w.metrics.countResults(e, answer)
	switch answer.result {
	case skipped, unwell:
		return retryTimes{behind: e.breaker.nextAttempt(now)}, answer
	case busy:
		return retryTimes{behind: now.Add(withJitter(r.w.Interval))}, answer
	}
	until, err := r.storeOutcome(ctx, a, answer)
	if err != nil {
		if ctx.Err() == nil {
			r.w.Logger.Error("cosignature not stored", "origin", a.shown.Origin, "witness", e.displayName(), "err", err)
		}
		return retryTimes{behind: now.Add(storeRest)}, answer
	}
	return retryTimesAfter(answer.result, known, until, now), answer
}

// maxBusy bounds the attempts of one submission to a busy witness. The limit of its lane decreases with each of them.
const maxBusy = 6

// submitUntilNotBusy runs a submission in a slot of its witness, and again in another slot if the witness is busy.
func (r *round) submitUntilNotBusy(ctx context.Context, a *submission, known bool) (answer outcome) {
	b := a.endpoint.breaker
	for range maxBusy {
		c, ok := b.acquireSlot(ctx, r.w.Clock)
		if !ok {
			return outcome{result: skipped}
		}
		ended := endedSubmission{of: a.shown.Origin, known: known, outcome: a.submitWithRetries(ctx)}
		var change healthChange
		answer, change = b.releaseSlot(c, ended, r.w.Clock())
		r.w.logHealthChange(a.endpoint, change)
		if answer.result != busy {
			break
		}
	}
	return answer
}

// retryTimesAfter returns the times of the next rounds after an outcome. until is the end of the pause that the
// outcome started, or zero.
func retryTimesAfter(r result, known bool, until, now time.Time) retryTimes {
	switch {
	case r == behind:
		return retryTimes{behind: now}
	case r == gone:
		return retryTimes{behind: now.Add(storeRest)}
	case r == failed && known:
		return retryTimes{behind: until}
	}
	return retryTimes{paused: until}
}

// freezeContradicted logs that a witness has seen a tree that the ledger does not extend, and freezes the ledger.
func (w *Witnesses) freezeContradicted(ctx context.Context, s *log.State, reason string) {
	w.metrics.contradictions.Inc()
	w.Logger.Error("a witness contradicts the ledger",
		"origin", s.Identity().Origin, "reason", reason, "frozen", !w.AlarmOnly)
	if w.AlarmOnly {
		return
	}
	if err := w.Ledgers.Freeze(ctx, s.Identity().Tenant, reason); err != nil {
		w.Logger.Error("ledger not frozen", "origin", s.Identity().Origin, "err", err)
	}
}
