package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const (
	lookEvery  = time.Second // maximum interval between checks for changed ledgers
	turnEvents = 4096        // of one ledger before the next ledger's turn
)

// followMoves re-verifies new events until ctx ends. It lists all ledgers of the store after every, or less often if
// that takes long; it notices changed ledgers in between immediately.
func (a *Auditor) followMoves(ctx context.Context, every time.Duration) {
	var looked time.Time
	var pause time.Duration
	for ctx.Err() == nil {
		if begin := time.Now(); begin.Sub(looked) >= pause {
			a.reportStop(ctx, a.inspectAll(ctx))
			looked = time.Now()
			pause = max(every, lookRest*looked.Sub(begin))
		}
		a.noteMoved(ctx)
		if !a.giveTurns(ctx, a.backlog.listDueLedgers(time.Now(), every)) {
			_ = syncs.Sleep(ctx, min(every, lookEvery))
		}
	}
}

// giveTurns gives each of the ledgers a turn. It reports whether there was one and all of them could be read.
func (a *Auditor) giveTurns(ctx context.Context, due []id.Tenant) bool {
	well := len(due) > 0
	for _, t := range due {
		if ctx.Err() != nil {
			return false
		}
		if err := a.takeTurn(ctx, t, turnEvents); err != nil && ctx.Err() == nil {
			a.logger.Error("ledger not re-verified", "tenant", t, "err", err)
			a.backlog.delayLedger(t, time.Now())
			well = false
		}
	}
	return well
}

// inspectAll makes one round: it determines the lag of each ledger and sets the metrics over all ledgers. A ledger with
// damaged records or envelopes has no lag, because its position stays before the damage.
func (a *Auditor) inspectAll(ctx context.Context) error {
	round := newRound()
	for s, err := range a.survey(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		if err := a.inspectOne(ctx, &s); err != nil && ctx.Err() == nil {
			a.logger.Error("ledger not re-verified", "tenant", s.Tenant, "err", err)
		}
		round.countLedger(s.Tenant, s.position.Reverified, s.level)
	}
	a.metrics.setRoundGauges(round, a.clock())
	a.lastRound.Store(round)
	return nil
}

// inspectOne compares the position of a ledger with its head. It does not load a ledger without new events.
func (a *Auditor) inspectOne(ctx context.Context, s *surveyed) error {
	err := s.err
	if log.IsDamage(err) { // loading the ledger freezes it
		_, err = a.ledgers.State(ctx, s.Tenant)
	}
	if err != nil {
		return fmt.Errorf("re-verify: %w", err)
	}
	if s.position.To > s.Head.Size { // another store: begin at the first event
		s.position.Reverified = log.Reverified{}
	}
	a.notePositionLag(ctx, s.Tenant, s.level, s.position.To, s.Head.Size)
	return nil
}

// noteMoved records the new sizes of changed ledgers.
func (a *Auditor) noteMoved(ctx context.Context) {
	moved, _ := a.moved.Take()
	for _, t := range moved {
		s, err := a.ledgers.State(ctx, t)
		if err != nil {
			continue // left to the next round
		}
		position, known := a.backlog.findPosition(t)
		if !known {
			done, err := a.readPosition(ctx, t)
			if err != nil {
				continue
			}
			position = done.To
		}
		a.notePositionLag(ctx, t, s.Fault().Level, position, s.Size())
	}
}

// notePositionLag records that a ledger is re-verified up to position and has the given number of events.
func (a *Auditor) notePositionLag(ctx context.Context, t id.Tenant, level log.Level, position, size id.Index) {
	switch {
	case level == log.Suspect || level == log.Frozen || level == log.Succeeded || size <= position:
		a.backlog.removeLedger(t)
	case !a.backlog.extendLag(t, position, size):
		since := id.InstantOf(a.clock())
		if oldest, err := log.ReadEvent(ctx, a.store, t, position, storage.FieldColumns); err == nil {
			since = oldest.ReceivedAt
		}
		a.backlog.replaceLag(t, lag{position: position, size: size, since: since, noticed: time.Now()})
	}
}

// takeTurn re-verifies up to the given number of new events of a ledger.
func (a *Auditor) takeTurn(ctx context.Context, t id.Tenant, most id.Index) error {
	done, err := a.readPosition(ctx, t)
	if err != nil {
		return err
	}
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	if done.To > s.Size() {
		done = positionRecord{}
	}
	if s.Fault().Level == log.Frozen || s.Size() == done.To {
		a.backlog.removeLedger(t)
		return nil
	}
	x, err := a.newExaminer(ctx, s, done.To, done.Root)
	if err != nil {
		return err
	}
	x.in = a.inNew
	if x.tree.Size() == 0 {
		done.Since = id.InstantOf(a.clock())
	}
	err = a.advanceSlowly(ctx, x, min(x.tree.Size()+most, s.Size()), func() float64 {
		a.noteMoved(ctx) // because a turn may take long
		return restFactor(a.backlog.countEvents())
	})
	if err == nil && !x.stopped && x.tree.Size() == s.Size() {
		err = x.compareHead(ctx)
	}
	if err != nil {
		return fmt.Errorf("re-verify: %w", err)
	}
	if x.wrong {
		a.backlog.removeLedger(t)
		return nil
	}
	return a.storeTurn(ctx, x, done.Since)
}

// storeTurn stores the position that a turn has reached.
func (a *Auditor) storeTurn(ctx context.Context, x *examiner, since id.Instant) error {
	t := x.identity.Tenant
	err := a.changePosition(ctx, t, func(done *positionRecord) {
		fresh := done.To == 0 || x.whole                                // it began at the first event
		a.metrics.events.Add(float64(x.tree.Size()) - float64(done.To)) // at the same time as the lag decreases
		done.To, done.Root, done.At = x.tree.Size(), x.tree.Root(), id.InstantOf(a.clock())
		if fresh {
			done.Since, done.Pass = since, passPosition{}
		}
	})
	if err != nil {
		return err
	}
	before, _ := a.backlog.findLag(t)
	a.backlog.removeLedger(t)
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	a.notePositionLag(ctx, t, s.Fault().Level, x.tree.Size(), s.Size())
	if x.tree.Size() < x.head.Size { // it continues immediately
		a.backlog.setNoticed(t, before.noticed)
	}
	return nil
}
