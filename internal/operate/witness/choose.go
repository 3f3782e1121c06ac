package witness

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

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
	r := &asked{w: w, state: state, confirms: w.Anchor && state.Fault().Level == log.ReadOnly}
	if level := state.Fault().Level; level != log.Healthy && level != log.Suspect && !r.confirms || state.Size() == 0 {
		return nil, nil
	}
	wanted, err := w.Organizations.Witnessing(ctx, e.tenant)
	if err != nil {
		return nil, err
	}
	if r.force, err = w.inForce(e.tenant, wanted); err != nil || len(r.force.targets) == 0 {
		return nil, err
	}
	if r.force.own() && !e.own {
		e.own, r.foreign = true, true
		return r, nil
	}
	if r.page, err = w.read(ctx, e.tenant); err != nil || r.forked(ctx) {
		return nil, err
	}
	if r.confirms {
		r.chooseToConfirm()
	} else {
		r.choose()
	}
	return r, nil
}

// forked reports whether a cosigned checkpoint is stored that the head does not extend,
// as far as sizes tell, and says so if there is one.
func (r *asked) forked(ctx context.Context) bool {
	shown, known := r.state.Shown(), r.page.newest
	if known.size() < shown.Size || known == nil || known.of(shown) {
		return false
	}
	r.w.contradiction(ctx, r.state, fmt.Sprintf("a cosigned checkpoint of size %d is stored that the head at %d does not extend", known.size(), shown.Size))
	return true
}

// choose picks who is asked, and notes when the others are.
func (r *asked) choose() {
	shown := r.state.Shown()
	r.page.fit(r.force)
	now := r.w.Clock()
	for _, e := range r.force.endpoints {
		due, at := r.page.due(e, shown, now)
		if due {
			r.asks = append(r.asks, r.about(e))
		}
		r.again = r.again.or(again{paused: at})
	}
}

// about returns the ask of an endpoint.
func (r *asked) about(e *endpoint) *ask {
	return &ask{w: r.w, endpoint: e, state: r.state, shown: r.state.Shown(), old: r.page.acknowledged(e)}
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
