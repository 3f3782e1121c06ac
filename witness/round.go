package witness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
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

// asked is a round that goes on.
type asked struct {
	w        *Witnesses
	force    *force
	state    *log.State
	page     *page
	asks     []*ask
	again    again // since some are in a pause
	confirms bool  // the head has no anchor: see anchor.go
	foreign  bool  // it belongs to the rounds of own witnesses
}

// prepare reads what a round needs; nil when nobody is to be asked.
func (w *Witnesses) prepare(ctx context.Context, e *entry) (*asked, error) {
	state, err := w.Ledgers.State(ctx, e.tenant)
	if err != nil {
		return nil, err
	}
	confirms := w.Anchor && state.Fault().Level == log.ReadOnly
	if level := state.Fault().Level; level != log.Healthy && level != log.Suspect && !confirms || state.Size() == 0 {
		return nil, nil
	}
	wanted, err := w.Organizations.Witnessing(ctx, e.tenant)
	if err != nil {
		return nil, err
	}
	r := &asked{w: w, state: state, confirms: confirms}
	if r.force, err = w.inForce(e.tenant, wanted); err != nil || len(r.force.targets) == 0 {
		return nil, err
	}
	if r.force.own() && !e.own {
		e.own, r.foreign = true, true
		return r, nil
	}
	if r.page, err = w.read(ctx, e.tenant); err != nil {
		return nil, err
	}
	shown := state.Shown()
	if known := r.page.newest; known.size() > shown.Size || known.size() == shown.Size && known != nil && !known.of(shown) {
		w.contradiction(ctx, state, fmt.Sprintf("a cosigned checkpoint of size %d is stored that the head at %d does not extend", known.size(), shown.Size))
		return nil, nil
	}
	if confirms {
		r.chooseToConfirm(shown)
	} else {
		r.choose(shown)
	}
	return r, nil
}

// choose picks who is asked, and notes when the others are.
func (r *asked) choose(shown tlog.Checkpoint) {
	r.page.fit(r.force)
	now := r.w.Clock()
	for _, e := range r.force.endpoints {
		due, at := r.page.due(e, shown, now)
		if due {
			r.asks = append(r.asks, r.about(e, shown))
		}
		r.again = r.again.or(again{paused: at})
	}
}

// about returns the ask of an endpoint.
func (r *asked) about(e *endpoint, shown tlog.Checkpoint) *ask {
	return &ask{w: r.w, endpoint: e, state: r.state, shown: shown, old: r.page.acknowledged(e)}
}

// due reports whether a key of an endpoint is wanted on a checkpoint and the witness
// may be asked, or else when it may; the zero time when no key is wanted.
func (p *page) due(e *endpoint, c tlog.Checkpoint, now time.Time) (is bool, at time.Time) {
	for _, t := range e.targets {
		if p.newest.of(c) && p.newest.by(t.Key) {
			continue
		}
		until := p.heard(t.Key).Until
		if until <= id.InstantOf(now) {
			return true, time.Time{}
		}
		at = earlier(at, until.Time())
	}
	return false, at
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
