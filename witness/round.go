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

// Back-off of a witness that does not want a ledger.
const (
	firstRefusal = time.Minute
	longRefusal  = time.Hour
)

// storeRest is how long a ledger waits whose store can't be read or written.
const storeRest = 30 * time.Second

// round asks the witnesses of a ledger about its newest checkpoint, each that has
// not cosigned it and does not rest, and returns when the ledger is to be asked
// about again; the zero time when it is not, unless it moves.
func (w *Witnesses) round(ctx context.Context, e *entry) time.Time {
	began := w.Clock()
	leave, err := w.asking.Enter(ctx, e.tenant)
	if err != nil {
		return began.Add(storeRest)
	}
	defer leave()
	r, err := w.prepare(ctx, e)
	if fault.Is(err, fault.NotFound) {
		return time.Time{}
	}
	if err != nil {
		if ctx.Err() == nil {
			w.Logger.Error("ledger not shown to witnesses", "tenant", e.tenant, "err", err)
		}
		return began.Add(storeRest)
	}
	if r == nil || r.foreign {
		return time.Time{}
	}
	var asking sync.WaitGroup
	answers := make([]time.Time, len(r.targets))
	for i, t := range r.targets {
		asking.Go(func() { answers[i] = r.ask(ctx, t, began) })
	}
	asking.Wait()
	var next time.Time
	for _, at := range answers {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// asked is a round that goes on.
type asked struct {
	w       *Witnesses
	force   *force
	state   *log.State
	page    *page
	targets []*target
	foreign bool // it belongs to the rounds of own witnesses
}

// prepare reads what a round needs; nil when nobody is to be asked.
func (w *Witnesses) prepare(ctx context.Context, e *entry) (*asked, error) {
	state, err := w.Ledgers.State(ctx, e.tenant)
	if err != nil {
		return nil, err
	}
	if level := state.Fault().Level; level != log.Healthy && level != log.Suspect || state.Size() == 0 {
		return nil, nil
	}
	wanted, err := w.Organizations.Witnessing(ctx, e.tenant)
	if err != nil {
		return nil, err
	}
	r := &asked{w: w, state: state}
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
	r.choose(shown)
	return r, nil
}

// choose picks who is asked.
func (r *asked) choose(shown tlog.Checkpoint) {
	now := id.InstantOf(r.w.Clock())
	for _, t := range r.force.targets {
		if r.page.newest.of(shown) && r.page.newest.by(t.Key) || r.page.hintOf(t.Key).Until > now {
			continue
		}
		r.targets = append(r.targets, t)
	}
}

// ask asks one witness, keeps what came of it and returns when the round is to be
// repeated for its sake.
func (r *asked) ask(ctx context.Context, t *target, began time.Time) time.Time {
	tries, ok := t.lane.enter(ctx, r.w.Clock)
	if !ok {
		r.w.metrics.result(t.lane.label, skipped)
		return t.lane.rest(began)
	}
	a := &ask{w: r.w, target: t, state: r.state, shown: r.state.Shown(), old: r.page.hintOf(t.Key).Size}
	answer := a.run(ctx, tries)
	now := r.w.Clock()
	t.lane.leave(answer.result, now, answer.wait)
	r.w.metrics.result(t.lane.label, answer.result)
	if answer.result == unwell {
		return t.lane.rest(now)
	}
	if err := r.keep(ctx, t, a, answer); err != nil {
		if ctx.Err() == nil {
			r.w.Logger.Error("cosignature not stored", "origin", a.shown.Origin, "witness", t.Key.Name(), "err", err)
		}
		return now.Add(storeRest)
	}
	switch answer.result {
	case behind:
		return now
	case gone:
		return now.Add(storeRest)
	}
	return time.Time{}
}

// keep stores what an answer says.
func (r *asked) keep(ctx context.Context, t *target, a *ask, answer answered) error {
	tenant := r.state.Identity().Tenant
	switch answer.result {
	case cosigned:
		return r.w.change(ctx, tenant, func(p *page) error {
			p.forget(r.force)
			*p.hintOf(t.Key) = hint{Size: a.shown.Size}
			return p.add(r.state.Checkpoint(), answer.signature, r.force)
		})
	case contradicted:
		r.w.contradiction(ctx, r.state, answer.reason)
		fallthrough
	case refused, unverified:
		r.w.Logger.Warn("witness does not cosign", "origin", a.shown.Origin, "witness", t.Key.Name(), "result", answer.result)
		return r.w.change(ctx, tenant, func(p *page) error {
			p.forget(r.force)
			h := p.hintOf(t.Key)
			h.Refusals++
			rest := max(jittered(backoff(firstRefusal, longRefusal, h.Refusals)), min(answer.wait, longRefusal))
			h.Until = id.InstantOf(r.w.Clock().Add(rest))
			return nil
		})
	}
	return nil
}

// forget drops the hints of those who are not asked any more.
func (p *page) forget(f *force) {
	kept := make(map[string]*hint, len(p.hints))
	for _, t := range f.targets {
		if name := t.Key.Identity(); p.hints[name] != nil {
			kept[name] = p.hints[name]
		}
	}
	p.hints = kept
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
