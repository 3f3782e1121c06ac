package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// stretchEvents is how many events of a whole pass are checked before its position is
// stored, so that the pass goes on after a crash.
const stretchEvents = 1 << 16

// passAllLedgers begins a whole pass over each ledger whose last one is too old, or goes on with
// one that did not end. In a ledger with damaged records or envelopes it checks all events
// behind the position as well, because the position stays before the damage and there may
// be worse. A ledger that can't be read does not keep the others from their turn.
func (a *Auditor) passAllLedgers(ctx context.Context) error {
	for t, err := range a.store.Tenants(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		err := a.passOneLedger(ctx, t)
		if err == nil && a.ledgers.FaultLevel(ctx, t) == log.Suspect {
			err = a.takeTurn(ctx, t, id.Index(tlog.MaxSize))
		}
		if err != nil && ctx.Err() == nil {
			a.logger.Error("ledger not re-verified", "tenant", t, "err", err)
		}
	}
	return nil
}

// passOneLedger re-verifies a ledger from its first event up to its published state. A ledger
// without a position is left to takeTurn, which begins at its first event.
func (a *Auditor) passOneLedger(ctx context.Context, t id.Tenant) error {
	done, err := a.readPosition(ctx, t)
	if err != nil || done.To == 0 {
		return err
	}
	now := id.InstantOf(a.clock())
	if done.Pass.Since == 0 && now.Time().Sub(done.Since.Time()) <= MaxPassAge {
		return nil
	}
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	if s.Fault().Level == log.Frozen {
		return nil
	}
	x, err := a.newExaminer(ctx, s, done.Pass.To, done.Pass.Root)
	if err != nil {
		return err
	}
	since := done.Pass.Since
	if x.tree.Size() == 0 {
		since = now
	}
	if err := a.continuePass(ctx, x, since); err != nil {
		return fmt.Errorf("re-verify: %w", err)
	}
	return nil
}

// continuePass goes on with a pass that began at since, and stores its position as long as
// nothing is wrong.
func (a *Auditor) continuePass(ctx context.Context, x *examiner, since id.Instant) error {
	t, end := x.identity.Tenant, x.head.Size
	for x.tree.Size() < end {
		if err := a.advanceSlowly(ctx, x, min(x.tree.Size()+stretchEvents, end),
			func() float64 { return usualRest }); err != nil {
			return err
		}
		if x.stopped {
			return nil
		}
		if x.tree.Size() < end && !x.wrong {
			at := passPosition{To: x.tree.Size(), Root: x.tree.Root(), Since: since}
			if err := a.changePosition(ctx, t, func(done *positionRecord) { done.Pass = at }); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	if err := x.compareHead(ctx); err != nil || x.wrong {
		return err
	}
	return a.changePosition(ctx, t, func(done *positionRecord) { done.endWholePass(x, since, a.clock()) })
}

// endWholePass notes that a whole pass that began at since came to its end.
func (p *positionRecord) endWholePass(x *examiner, since id.Instant, now time.Time) {
	p.Since, p.Pass = since, passPosition{}
	if x.tree.Size() > p.To {
		p.To, p.Root, p.At = x.tree.Size(), x.tree.Root(), id.InstantOf(now)
	}
}
