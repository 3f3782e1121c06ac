package witness

import (
	"context"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/log"
)

// storeRest is how long a ledger waits whose store can't be read or written.
const storeRest = 30 * time.Second

// round asks the witnesses of a ledger about its newest checkpoint, each that has
// not cosigned it and does not rest, and returns when the ledger is to be asked
// about again although it does not move.
func (w *Witnesses) round(ctx context.Context, e *entry) again {
	began := w.Clock()
	leave, err := w.asking.Enter(ctx, e.tenant)
	if err != nil {
		return again{behind: began.Add(storeRest)}
	}
	defer leave()
	r, err := w.prepare(ctx, e)
	if fault.Is(err, fault.NotFound) {
		return again{}
	}
	if err != nil {
		if ctx.Err() == nil {
			w.Logger.Error("ledger not shown to witnesses", "tenant", e.tenant, "err", err)
		}
		return again{behind: began.Add(storeRest)}
	}
	if r == nil || r.foreign {
		return again{}
	}
	if r.confirms {
		return r.confirmHead(ctx)
	}
	next, _ := r.askAll(ctx)
	return next
}

// askAll asks all who were chosen, at once, and returns when the round is to be repeated
// and what each ask came to.
func (r *asked) askAll(ctx context.Context) (next again, answers []answered) {
	var asking sync.WaitGroup
	answers = make([]answered, len(r.asks))
	times := make([]again, len(r.asks))
	for i, a := range r.asks {
		asking.Go(func() { times[i], answers[i] = r.ask(ctx, a) })
	}
	asking.Wait()
	next = r.again
	for _, t := range times {
		next = next.or(t)
	}
	return next, answers
}

// ask asks one endpoint, keeps what came of it and returns when the round is to be
// repeated for its sake.
func (r *asked) ask(ctx context.Context, a *ask) (again, answered) {
	e := a.endpoint
	if !e.lane.enter(ctx, r.w.Clock) {
		r.w.metrics.results(e, answered{result: skipped})
		return again{behind: e.lane.rest(r.w.Clock())}, answered{result: skipped}
	}
	answer := a.run(ctx)
	now := r.w.Clock()
	known := r.page.acknowledged(e) > 0
	r.w.tell(e, e.lane.leave(asking{of: a.shown.Origin, known: known, answered: answer}, now))
	r.w.metrics.results(e, answer)
	if answer.result == unwell {
		return again{behind: e.lane.rest(now)}, answer
	}
	until, err := r.keep(ctx, a, answer)
	if err != nil {
		if ctx.Err() == nil {
			r.w.Logger.Error("cosignature not stored", "origin", a.shown.Origin, "witness", e.name(), "err", err)
		}
		return again{behind: now.Add(storeRest)}, answer
	}
	return after(answer.result, known, until, now), answer
}

// after returns when a round is to be repeated after an answer. until is when the
// pause ends that the answer began, the zero time when it began none.
func after(r result, known bool, until, now time.Time) again {
	switch {
	case r == behind:
		return again{behind: now}
	case r == gone:
		return again{behind: now.Add(storeRest)}
	case r == failed && known:
		return again{behind: until}
	}
	return again{paused: until}
}

// contradiction tells the operator that somebody knows of a tree that the ledger
// does not extend, and freezes the ledger.
func (w *Witnesses) contradiction(ctx context.Context, s *log.State, reason string) {
	w.metrics.contradictions.Inc()
	w.Logger.Error("a witness contradicts the ledger", "origin", s.Identity().Origin, "reason", reason, "frozen", !w.AlarmOnly)
	if w.AlarmOnly {
		return
	}
	if err := w.Ledgers.Freeze(ctx, s.Identity().Tenant, reason); err != nil {
		w.Logger.Error("ledger not frozen", "origin", s.Identity().Origin, "err", err)
	}
}
