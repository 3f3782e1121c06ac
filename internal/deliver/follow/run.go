package follow

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
)

// maxRunningOrganization bounds the looks under way of one organization.
const maxRunningOrganization = 4

// failurePause is how long a ledger waits after a look that failed, with Options.All.
const failurePause = 5 * time.Second

// Run follows the ledgers until ctx ends. It returns when no work is under way any more.
func (f *Follower) Run(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer f.flown.Wait()
	for {
		if err := f.Sweep(ctx, logger); err != nil && ctx.Err() == nil {
			logger.Warn("ledgers can't be followed", "kind", f.Positions, "err", err)
		}
		select {
		case <-tick.C:
		case <-f.room:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep begins the work for ledgers that moved and for entries that are due, as far as there is room.
func (f *Follower) Sweep(ctx context.Context, logger *slog.Logger) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := f.learn(ctx, logger); err != nil {
		return err
	}
	f.collectMoved()
	for u, w := f.takeWaiting(); w != nil; u, w = f.takeWaiting() {
		if _, begun := f.beginLook(ctx, &look{Follower: f, unit: u, forced: w.force}, logger); !begun {
			f.wake(u, w.force)
			break
		}
	}
	if f.All != nil {
		return nil
	}
	return f.due.Sweep(ctx, f.currentTime, func(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
		l := &look{Follower: f, unit: unit{e.Tenant, e.Name}, entry: &e}
		stored, err := f.positions.Get(ctx, e.Tenant, e.Name)
		if err != nil {
			return schedule.Keep(), err
		}
		if outcome, over := l.checkPosition(stored); over {
			return outcome, nil
		}
		outcome, _ := f.beginLook(ctx, l, logger)
		return outcome, nil
	})
}

// learn finds what there is to follow, at the first sweep and after organizations came to this process.
func (f *Follower) learn(ctx context.Context, logger *slog.Logger) (err error) {
	gains, first := f.share.Gains(), false
	f.begin.Do(func() {
		f.moved, f.relisted = f.Ledgers.Moves(), f.Ledgers.Relisted()
		first = true
	})
	switch {
	case !first && gains == f.gains:
		return nil
	case f.All == nil:
		err = f.learnFollowers(ctx)
	case f.listing.CompareAndSwap(false, true):
		f.flown.Go(func() {
			defer f.listing.Store(false)
			f.learnLedgers(ctx, logger)
		})
	default: // the next sweep lists them again
		return nil
	}
	if err == nil {
		f.gains = gains
	}
	return err
}

// learnFollowers finds the followers that have entries. Each is looked at once.
func (f *Follower) learnFollowers(ctx context.Context) error {
	for e, err := range f.due.Entries(ctx) {
		if err != nil {
			return err
		}
		if f.share.Owned(e.Tenant) {
			f.Wake(e.Tenant, e.Name)
		}
	}
	return nil
}

// learnLedgers finds the ledgers of Options.All that are worth a look. Their heads are read below the
// ledgers, so that they need not be brought into memory.
func (f *Follower) learnLedgers(ctx context.Context, logger *slog.Logger) {
	for {
		err := f.wakeLedgers(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		logger.Warn("ledgers can't be listed", "kind", f.Positions, "err", err)
		if syncs.Sleep(ctx, failurePause) != nil {
			return
		}
	}
}

func (f *Follower) wakeLedgers(ctx context.Context) error {
	for l, err := range storage.Survey(ctx, f.All, storage.SurveyQuestion{Wanted: f.share.Owned}) {
		if err = errors.Join(err, l.Err); err != nil {
			return err
		}
		if l.Head.Size >= f.Least {
			f.Wake(l.Tenant, "")
		}
	}
	return nil
}

// collectMoved notes the followers of the ledgers that moved, and those whose pause is over.
func (f *Follower) collectMoved() {
	moved, now := slices.Concat(f.moved.Take(), f.relisted.Take()), f.currentTime()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range moved {
		if f.All != nil {
			f.queue.addWaiting(unit{tenant: t}, false, now)
		}
		for name := range f.known[t] {
			f.queue.addWaiting(unit{t, name}, false, now)
		}
	}
	for u, at := range f.later {
		if at <= now {
			f.queue.addWaiting(u, true, now)
			delete(f.later, u)
		}
	}
}

// takeWaiting takes the first follower that waits and has room; nil when there is none.
func (f *Follower) takeWaiting() (unit, *waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.running) >= f.Places {
		f.left = f.left || len(f.queue.waiting) > 0
		return unit{}, nil
	}
	u, w := f.queue.takeFirst(func(u unit) bool {
		if !f.share.Owned(u.tenant) {
			f.queue.remove(u)
			return false
		}
		_, refused := f.roomFor(u)
		return !refused
	})
	f.left = f.left || w == nil && len(f.queue.waiting) > 0
	return u, w
}

// beginLook begins a look in a goroutine of its own, if there is room for it. The look settles the
// entry.
func (f *Follower) beginLook(ctx context.Context, l *look, logger *slog.Logger) (o schedule.Outcome, begun bool) {
	outcome, begun := f.reserve(l.unit)
	if !begun {
		return outcome, false
	}
	f.flown.Go(func() {
		defer f.release(l.unit)
		if err := l.run(ctx); err != nil && ctx.Err() == nil {
			logger.Warn("a ledger can't be followed", "kind", f.Positions, "tenant", l.tenant, "name", l.name,
				"err", err)
		}
	})
	return outcome, true
}

// reserve takes a place for a look, or returns which bound has no room.
func (f *Follower) reserve(u unit) (outcome schedule.Outcome, begun bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	outcome, refused := f.roomFor(u)
	if refused {
		_, out := f.running[u]
		f.left = f.left || !out
		return outcome, false
	}
	f.running[u] = struct{}{}
	f.addKnown(u)
	return schedule.Keep(), true
}

// roomFor reports whether a look has to wait, and for which bound. f.mu is held.
func (f *Follower) roomFor(u unit) (outcome schedule.Outcome, refused bool) {
	if _, out := f.running[u]; out {
		return schedule.Keep(), true
	}
	own, failing := 0, 0
	for other := range f.running {
		if other.tenant == u.tenant {
			own++
		}
		if _, fails := f.failing[other]; fails {
			failing++
		}
	}
	_, fails := f.failing[u]
	switch {
	case len(f.running) >= f.Places:
		return schedule.AllFull(), true
	case own >= maxRunningOrganization, fails && failing >= max(f.Places/2, 1):
		return schedule.OrganizationFull(), true
	}
	return schedule.Keep(), false
}

func (f *Follower) release(u unit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.running, u)
	if !f.left {
		return
	}
	f.left = false
	select {
	case f.room <- struct{}{}:
	default:
	}
}

// noteLeft notes that work waits for a place, so that the next sweep begins when one is free.
func (f *Follower) noteLeft() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = true
}

// setFailing notes whether the last try of the follower failed.
func (l *look) setFailing(failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed {
		l.failing[l.unit] = struct{}{}
		return
	}
	delete(l.failing, l.unit)
}
