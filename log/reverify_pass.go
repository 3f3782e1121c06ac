package log

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// passStretch is how many events of a whole pass are checked until its position is
// stored, so that a pass goes on after a crash.
const passStretch = 1 << 16

// passAll begins a whole pass of each ledger for which the last one is too old, or
// goes on with one that did not end. Of a ledger with damaged records or envelopes it
// looks at all events behind the position, which stays before the damage: there may be
// worse. A ledger that can't be read does not keep the others from their turn.
func (r *reverification) passAll(ctx context.Context) error {
	for t, err := range r.store.Tenants(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		err := r.pass(ctx, t)
		if err == nil && r.faultLevel(ctx, t) == Suspect {
			err = r.turn(ctx, t, id.Index(tlog.MaxSize))
		}
		if err != nil && ctx.Err() == nil {
			r.errors.Error("ledger not re-verified", "tenant", t, "err", err)
		}
	}
	return nil
}

// pass re-verifies a ledger from its first event up to its published state. One that
// was never looked at is the follower's, which begins at its first event anyway.
func (r *reverification) pass(ctx context.Context, t id.Tenant) error {
	done, err := r.record(ctx, t)
	if err != nil || done.To == 0 {
		return err
	}
	now := id.InstantOf(r.clock())
	if done.Pass.Since == 0 && now.Time().Sub(done.Since.Time()) <= reverifyFresh {
		return nil
	}
	led, err := r.ledger(ctx, t)
	if err != nil {
		return err
	}
	s := led.published.Load()
	if s.fault.Level == Frozen {
		return nil
	}
	x, err := r.examiner(ctx, led, s, done.Pass.To, done.Pass.Root)
	if err != nil {
		return err
	}
	since := done.Pass.Since
	if x.tree.Size() == 0 {
		since = now
	}
	err = r.goThrough(ctx, x, since)
	if errors.Is(err, errExamined) {
		return nil
	}
	return storeError("re-verify", err)
}

// goThrough goes on with a pass that began at since, and stores where it is: nowhere
// once something is wrong.
func (r *reverification) goThrough(ctx context.Context, x *examiner, since id.Instant) error {
	t, end := x.identity.Tenant, x.head.Size
	for x.tree.Size() < end {
		if err := r.work(ctx, x, min(x.tree.Size()+passStretch, end), func() float64 { return reverifyIdle }); err != nil {
			return err
		}
		if x.tree.Size() < end && !x.wrong {
			at := passed{To: x.tree.Size(), Root: x.tree.Root(), Since: since}
			if err := r.write(ctx, t, func(done *reverifyRecord) { done.Pass = at }); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	if err := x.atHead(ctx); err != nil || x.wrong {
		return err
	}
	return r.write(ctx, t, func(done *reverifyRecord) { done.passed(x, since, r.clock()) })
}

// passed notes that a whole pass that began at since came to its end.
func (d *reverifyRecord) passed(x *examiner, since id.Instant, now time.Time) {
	d.Since, d.Pass = since, passed{}
	if x.tree.Size() > d.To {
		d.To, d.Root, d.At = x.tree.Size(), x.tree.Root(), id.InstantOf(now)
	}
}
