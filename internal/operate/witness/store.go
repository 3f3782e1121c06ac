package witness

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/trust"
)

// storeOutcome stores an outcome for all keys of the endpoint. It returns the earliest end of the pauses that it
// starts, or zero.
func (r *round) storeOutcome(ctx context.Context, a *submission, answer outcome) (until time.Time, err error) {
	switch answer.result {
	case cosigned:
	case contradicted:
		r.w.freezeContradicted(ctx, r.state, answer.reason)
	case refused, unverified, failed:
	default:
		return time.Time{}, nil
	}
	err = r.w.changeRecord(ctx, r.state.Identity().Tenant, func(p *ledgerRecord) error {
		p.applyPolicy(r.active)
		until = time.Time{}
		for _, t := range a.endpoint.targets {
			end, err := r.storeKeyOutcome(p, a, t, answer)
			if err != nil {
				return err
			}
			until = earlierTime(until, end)
		}
		return nil
	})
	return until, err
}

// storeKeyOutcome applies an outcome to the record for one key.
func (r *round) storeKeyOutcome(
	p *ledgerRecord, a *submission, t *target, answer outcome,
) (until time.Time, err error) {
	now := r.w.Clock()
	if line, ok := answer.lines[t.Key.Identity()]; ok {
		if at := cosignatureTime(line); trust.IsAhead(at, id.InstantOf(now)) {
			r.w.rare.Warn("a witness cosigns with a time in the future, so its cosignatures do not prove a time",
				"origin", a.shown.Origin, "witness", t.Key.Name(), "time", at)
		}
		*p.mutableHint(t.Key) = hint{Size: a.shown.Size, Last: cosigned, At: id.InstantOf(now)}
		return time.Time{}, p.addCosignature(r.state.Checkpoint(), line, r.active, id.InstantOf(now))
	}
	how := answer.resultForKey(t)
	h := p.mutableHint(t.Key)
	h.extendPause(how, answer.wait, now)
	p.under = r.active.digest
	r.logRefusal(a, t, how, h)
	return h.Until.Time(), nil
}

// resultForKey returns the result for one key of the endpoint.
func (a outcome) resultForKey(t *target) result {
	if _, ok := a.lines[t.Key.Identity()]; a.result == cosigned && !ok {
		return unverified
	}
	return a.result
}

// logRefusal logs that a witness does not cosign a ledger: at level warn the first time in a row, later at level debug.
func (r *round) logRefusal(a *submission, t *target, how result, h *hint) {
	line := r.w.rare.Debug
	if h.Refusals == 1 {
		line = r.w.rare.Warn
	}
	line("witness does not cosign",
		"origin", a.shown.Origin, "witness", t.Key.Name(), "result", how, "retry_at", h.Until)
}

// logHealthChange logs a change of a witness's health.
func (w *Witnesses) logHealthChange(e *endpoint, n healthChange) {
	logger := w.Logger
	if e.breaker.label == ownLabel {
		logger = w.rare
	}
	switch n.turned {
	case turnedUnwell:
		attributes := []any{"witness", e.displayName()}
		if n.cause.class != "" {
			attributes = append(attributes, "class", n.cause.class)
		} else {
			attributes = append(attributes, "class", "status", "status", n.cause.status)
		}
		logger.Warn("witness is failing and is paused", attributes...)
	case turnedWell:
		logger.Info("witness has recovered", "witness", e.displayName(), "after", n.after.Round(time.Second).String())
	}
}
