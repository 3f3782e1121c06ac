package witness

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/id"
)

// keep stores what an answer says, and returns the end of the pause that it begins for
// a key of the endpoint; the zero time when it begins none.
func (r *asked) keep(ctx context.Context, a *ask, answer answered) (until time.Time, err error) {
	switch answer.result {
	case cosigned:
	case contradicted:
		r.w.contradiction(ctx, r.state, answer.reason)
	case refused, unverified, failed:
	default:
		return time.Time{}, nil
	}
	err = r.w.change(ctx, r.state.Identity().Tenant, func(p *page) error {
		p.fit(r.force)
		until = time.Time{}
		for _, t := range a.endpoint.targets {
			end, err := r.keepOf(p, a, t, answer)
			if err != nil {
				return err
			}
			until = earlier(until, end)
		}
		return nil
	})
	return until, err
}

// keepOf changes a page by what an answer says of one key.
func (r *asked) keepOf(p *page, a *ask, t *target, answer answered) (until time.Time, err error) {
	now := r.w.Clock()
	if line, ok := answer.lines[t.Key.Identity()]; ok {
		*p.hintOf(t.Key) = hint{Size: a.shown.Size, Last: cosigned, At: id.InstantOf(now)}
		return time.Time{}, p.add(r.state.Checkpoint(), line, r.force)
	}
	how := answer.of(t)
	h := p.hintOf(t.Key)
	h.pause(how, answer.wait, now)
	p.under = r.force.digest
	r.tellPause(a, t, how, h)
	return h.Until.Time(), nil
}

// of returns how an ask ended for one key of its endpoint.
func (a answered) of(t *target) result {
	if _, ok := a.lines[t.Key.Identity()]; a.result == cosigned && !ok {
		return unverified
	}
	return a.result
}

// tellPause tells the operator that a witness does not cosign a ledger, the first time
// in a row.
func (r *asked) tellPause(a *ask, t *target, how result, h *hint) {
	line := r.w.rare.Debug
	if h.Refusals == 1 {
		line = r.w.rare.Warn
	}
	line("witness does not cosign", "origin", a.shown.Origin, "witness", t.Key.Name(), "result", how, "asked_again", h.Until)
}

// tell tells the operator what there is to tell of a witness as a whole.
func (w *Witnesses) tell(e *endpoint, n news) {
	logger := w.Logger
	if e.lane.label == ownLabel {
		logger = w.rare
	}
	switch n.turned {
	case turnedUnwell:
		attributes := []any{"witness", e.name()}
		if n.trouble.class != "" {
			attributes = append(attributes, "class", n.trouble.class)
		} else {
			attributes = append(attributes, "class", "status", "status", n.trouble.status)
		}
		logger.Warn("witness is not well: it is left alone for a while", attributes...)
	case turnedWell:
		logger.Info("witness is well again", "witness", e.name(), "after", n.after.Round(time.Second).String())
	}
}
