package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// stretchEvents is the number of events of a whole pass after which its position is stored, so that the pass can be
// resumed after a crash.
const stretchEvents = 1 << 16

// passAllLedgers begins a whole pass over each ledger whose latest one is too old, and continues unfinished passes. In
// a ledger with damaged records or envelopes it also checks all events after the position, because the position stays
// before the damage and there may be worse damage after it. A ledger that can't be read does not delay the others. It
// returns how long listing all ledgers took.
func (a *Auditor) passAllLedgers(ctx context.Context) (took time.Duration, err error) {
	begin := time.Now()
	due, err := a.listPasses(ctx)
	took = time.Since(begin)
	for _, p := range due {
		if ctx.Err() != nil {
			break
		}
		err := a.passOneLedger(ctx, p.tenant)
		if err == nil && p.suspect {
			err = a.takeTurn(ctx, p.tenant, id.Index(tlog.MaxSize))
		}
		if err != nil && ctx.Err() == nil {
			a.logger.Error("ledger not re-verified", "tenant", p.tenant, "err", err)
		}
	}
	return took, err
}

// duePass is a ledger to be read from its first event.
type duePass struct {
	tenant  id.Tenant
	suspect bool // has damaged records or envelopes
}

// listPasses returns the ledgers with a due whole pass, and those with damage.
func (a *Auditor) listPasses(ctx context.Context) (due []duePass, err error) {
	for s, err := range a.survey(ctx) {
		if err != nil || ctx.Err() != nil {
			return due, err
		}
		suspect := s.level == log.Suspect
		if suspect || s.err != nil || a.isPassDue(s.position) {
			due = append(due, duePass{s.Tenant, suspect})
		}
	}
	return due, nil
}

// isPassDue reports whether a ledger with the given position is due for a whole pass. A ledger without a position is
// left to takeTurn, which begins at its first event.
func (a *Auditor) isPassDue(p positionRecord) bool {
	return p.To > 0 && (p.Pass.Since != 0 || a.clock().Sub(p.Since.Time()) > MaxPassAge)
}

// passOneLedger re-verifies a ledger from its first event to its published state if that is due.
func (a *Auditor) passOneLedger(ctx context.Context, t id.Tenant) error {
	done, err := a.readPosition(ctx, t)
	if err != nil || !a.isPassDue(done) {
		return err
	}
	now := id.InstantOf(a.clock())
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

// continuePass continues a pass that began at since, and stores its position as long as nothing is wrong.
func (a *Auditor) continuePass(ctx context.Context, x *examiner, since id.Instant) error {
	t, end := x.identity.Tenant, x.head.Size
	for x.tree.Size() < end {
		if err := a.advanceSlowly(ctx, x, min(x.tree.Size()+stretchEvents, end),
			func() float64 { return passRest }); err != nil {
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

// endWholePass records that a whole pass that began at since has ended.
func (p *positionRecord) endWholePass(x *examiner, since id.Instant, now time.Time) {
	p.Since, p.Pass = since, passPosition{}
	if x.tree.Size() > p.To {
		p.To, p.Root, p.At = x.tree.Size(), x.tree.Root(), id.InstantOf(now)
	}
}
