package log

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/storage"
)

const (
	lookEvery    = time.Second // how often it is looked which ledgers have moved
	followEvents = 4096        // of one ledger that are followed before another one's turn
)

// follow re-verifies what is new until ctx ends. Every so often it looks at all ledgers
// of the store; those that move meanwhile are told to it.
func (r *reverification) follow(ctx context.Context, every time.Duration) {
	var looked time.Time
	for ctx.Err() == nil {
		if time.Since(looked) >= every {
			r.tell(ctx, r.lookAtAll(ctx))
			looked = time.Now()
		}
		r.lookAtMoved(ctx)
		if !r.turns(ctx, r.backlog.due(time.Now(), every)) {
			_ = wait.For(ctx, min(every, lookEvery))
		}
	}
}

// turns gives each of the ledgers a turn. It reports whether there was one, and all
// could be read.
func (r *reverification) turns(ctx context.Context, due []id.Tenant) bool {
	well := len(due) > 0
	for _, t := range due {
		if ctx.Err() != nil {
			return false
		}
		if err := r.turn(ctx, t, followEvents); err != nil && ctx.Err() == nil {
			r.errors.Error("ledger not re-verified", "tenant", t, "err", err)
			r.backlog.hold(t, time.Now())
			well = false
		}
	}
	return well
}

// lookAtAll is a round: it finds out how far each ledger's re-verification lies behind
// its head, and tells of all of them together. A ledger with damaged records or envelopes
// counts for no lag, because its position stays before the damage.
func (r *reverification) lookAtAll(ctx context.Context) error {
	round := newRound()
	for t, err := range r.store.Tenants(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		done, level, err := r.look(ctx, t)
		if err != nil && ctx.Err() == nil {
			r.errors.Error("ledger not re-verified", "tenant", t, "err", err)
		}
		round.add(done, level)
	}
	r.metrics.round.set(round, r.clock())
	return nil
}

// look compares a ledger's position with its head. It does not load a ledger that has
// nothing new.
func (r *reverification) look(ctx context.Context, t id.Tenant) (Reverified, Level, error) {
	level := r.faultLevel(ctx, t)
	done, err := r.record(ctx, t)
	if err != nil {
		return done.Reverified, level, err
	}
	head, err := r.store.Head(ctx, t)
	if isDamage(err) { // reading the ledger says what that does to it
		_, err = r.ledger(ctx, t)
	}
	if err != nil {
		return done.Reverified, level, storeError("re-verify", err)
	}
	if done.To > head.Size { // another store: begin anew
		done.Reverified = Reverified{}
	}
	r.noteLag(ctx, t, level, done.To, head.Size)
	return done.Reverified, level, nil
}

// lookAtMoved notes the new sizes of the ledgers that moved.
func (r *reverification) lookAtMoved(ctx context.Context) {
	for _, t := range r.moved.Take() {
		led, err := r.ledger(ctx, t)
		if err != nil {
			continue // the next round looks at it
		}
		s := led.published.Load()
		position, known := r.backlog.position(t)
		if !known {
			done, err := r.record(ctx, t)
			if err != nil {
				continue
			}
			position = done.To
		}
		r.noteLag(ctx, t, s.fault.Level, position, s.Size())
	}
}

// noteLag notes that a ledger is re-verified up to position and has so many events.
func (r *reverification) noteLag(ctx context.Context, t id.Tenant, level Level, position, size id.Index) {
	switch {
	case level == Suspect || level == Frozen || level == Succeeded || size <= position:
		r.backlog.drop(t)
	case !r.backlog.grow(t, position, size):
		since := id.InstantOf(r.clock())
		if oldest, err := one(r.store.Events(ctx, t, position, position+1, storage.FieldRecord)); err == nil {
			since = oldest.ReceivedAt
		}
		r.backlog.put(t, behind{position: position, size: size, since: since, noticed: time.Now()})
	}
}

// turn re-verifies the next events of a ledger, most of them at the most.
func (r *reverification) turn(ctx context.Context, t id.Tenant, most id.Index) error {
	done, err := r.record(ctx, t)
	if err != nil {
		return err
	}
	led, err := r.ledger(ctx, t)
	if err != nil {
		return err
	}
	s := led.published.Load()
	if done.To > s.Size() {
		done = reverifyRecord{}
	}
	if s.fault.Level == Frozen || s.Size() == done.To {
		r.backlog.drop(t)
		return nil
	}
	x, err := r.examiner(ctx, led, s, done.To, done.Root)
	if err != nil {
		return err
	}
	if x.tree.Size() == 0 {
		done.Since = id.InstantOf(r.clock())
	}
	err = r.work(ctx, x, min(x.tree.Size()+most, s.Size()), func() float64 {
		r.lookAtMoved(ctx) // a turn may take long
		return restAt(r.backlog.events())
	})
	if err == nil && x.tree.Size() == s.Size() {
		err = x.atHead(ctx)
	}
	if errors.Is(err, errExamined) || err == nil && x.wrong {
		r.backlog.drop(t)
		return nil
	}
	if err != nil {
		return storeError("re-verify", err)
	}
	return r.reached(ctx, led, x, done.Since)
}

// reached stores the position of a turn.
func (r *reverification) reached(ctx context.Context, led *ledger, x *examiner, since id.Instant) error {
	t := x.identity.Tenant
	err := r.write(ctx, t, func(done *reverifyRecord) {
		fresh := done.To == 0 || x.whole // it began at the first event
		done.To, done.Root, done.At = x.tree.Size(), x.tree.Root(), id.InstantOf(r.clock())
		if fresh {
			done.Since, done.Pass = since, passed{}
		}
	})
	if err != nil {
		return err
	}
	before, _ := r.backlog.get(t)
	r.backlog.drop(t)
	s := led.published.Load()
	r.noteLag(ctx, t, s.fault.Level, x.tree.Size(), s.Size())
	if x.tree.Size() < x.head.Size { // it goes on at once
		r.backlog.noticed(t, before.noticed)
	}
	return nil
}
