package witness

import (
	"context"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// confirmTime bounds for how long the first event that a ledger takes waits for its
// witnesses.
const confirmTime = 2 * time.Second

// Confirm asks all witnesses of a ledger about the head of s, also those whose
// cosignature of it is stored, since the store may be an older one: a witness that
// knows of a larger tree, or of another one, freezes the ledger. It is for the ledgers
// to call before the first event that a ledger takes since it was read (log.Witness).
// After two seconds, and with a witness that is not well, the event goes on: what the
// witness has to say is then found by the next round.
func (w *Witnesses) Confirm(ctx context.Context, s *log.State) {
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	leave, err := w.asking.Enter(ctx, s.Identity().Tenant)
	if err == nil {
		defer leave()
		err = w.confirm(ctx, s)
	}
	if err != nil {
		w.Logger.Warn("witnesses not asked before the first event", "origin", s.Identity().Origin, "err", err)
	}
}

func (w *Witnesses) confirm(ctx context.Context, s *log.State) error {
	t := s.Identity().Tenant
	wanted, err := w.Organizations.Witnessing(ctx, t)
	if err != nil {
		return err
	}
	r := &asked{w: w, state: s}
	if r.force, err = w.inForce(t, wanted); err != nil || len(r.force.targets) == 0 {
		return err
	}
	if r.page, err = w.read(ctx, t); err != nil {
		return err
	}
	r.page.fit(r.force)
	now := id.InstantOf(w.Clock())
	for _, e := range r.force.endpoints {
		if r.page.wants(e, now) {
			r.asks = append(r.asks, r.about(e).own())
		}
	}
	r.askAll(ctx)
	return ctx.Err()
}

// wants reports whether a witness has not said lately that it does not want the ledger.
func (p *page) wants(e *endpoint, now id.Instant) bool {
	return slices.ContainsFunc(e.targets, func(t *target) bool { return p.heard(t.Key).Until <= now })
}

// own makes an ask of a witness that has cosigned the ledger begin with the size of the
// tree that is asked about: the witness then says which size it has, if that is another.
func (a *ask) own() *ask {
	if a.old > 0 && a.old != a.shown.Size {
		a.old, a.guessed = a.shown.Size, true
	}
	return a
}
