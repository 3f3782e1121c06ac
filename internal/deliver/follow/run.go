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

// maxRunningOrganization bounds the looks in flight of one organization.
const maxRunningOrganization = 4

// failurePause is the pause of a ledger after a failed look, with Options.All.
const failurePause = 5 * time.Second

// Run follows the ledgers until ctx ends. It returns when no look is in flight.
func (f *Follower) Run(ctx context.Context, logger *slog.Logger) {
	sweep := func(ctx context.Context) error { return f.Sweep(ctx, logger) }
	f.slots.Run(ctx, sweep, func(err error) { logger.Warn("ledgers cannot be followed", "kind", f.Positions, "err", err) })
}

// Sweep starts looks at ledgers that moved and at entries that are due, as far as there are slots.
func (f *Follower) Sweep(ctx context.Context, logger *slog.Logger) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := f.learn(ctx, logger); err != nil {
		return err
	}
	f.collectMoved()
	f.startWaiting(ctx, logger)
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
		if f.slots.InFlight(l.job()) {
			return schedule.Keep(), nil
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		outcome, _ := f.startLook(ctx, l, logger)
		return outcome, nil
	})
}

// learn finds the followers, at the first sweep and after this process has gained organizations.
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
		f.slots.Go(func() {
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

// learnFollowers wakes each follower that has an entry.
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

// learnLedgers wakes the followers of the ledgers of Options.All that are worth a look. It reads heads from the store,
// so that the ledgers are not loaded into memory.
func (f *Follower) learnLedgers(ctx context.Context, logger *slog.Logger) {
	for {
		err := f.wakeLedgers(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		logger.Warn("ledgers cannot be listed", "kind", f.Positions, "err", err)
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

// collectMoved queues the followers of the ledgers that changed, and the followers whose pause has ended.
func (f *Follower) collectMoved() {
	moved, _ := f.moved.Take()
	relisted, _ := f.relisted.Take()
	now := f.currentTime()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range slices.Concat(moved, relisted) {
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

// startWaiting starts looks at the followers that wait, in their order, as far as there are slots. The others keep their
// order.
func (f *Follower) startWaiting(ctx context.Context, logger *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue.takeEach(func(u unit, w *waiter) (taken, stop bool) {
		if !f.share.Owned(u.tenant) {
			return true, false
		}
		outcome, started := f.startLook(ctx, &look{Follower: f, unit: u, forced: w.force}, logger)
		return started, outcome == schedule.AllFull()
	})
}

// The lanes of looks.
const (
	laneHealthy = "healthy"
	laneFailing = "failing" // the last attempt failed
)

// startLook starts a look in a goroutine of its own if it has a slot. Otherwise it returns which entries must wait. The
// look settles its entry. The caller must hold f.mu.
func (f *Follower) startLook(ctx context.Context, l *look, logger *slog.Logger) (o schedule.Outcome, started bool) {
	lane := laneHealthy
	if _, fails := f.failing[l.unit]; fails {
		lane = laneFailing
	}
	o, started = f.slots.Start(l.job(), lane, func() {
		if err := l.run(ctx); err != nil && ctx.Err() == nil {
			logger.Warn("a ledger cannot be followed", "kind", f.Positions, "tenant", l.tenant, "name", l.name,
				"err", err)
		}
	})
	if started {
		f.addKnown(l.unit)
	}
	return o, started
}

// checkSlots returns which entries must wait before one more look may start.
func (f *Follower) checkSlots(inFlight schedule.Jobs, j schedule.Job, lane string) schedule.Outcome {
	own, alsoFailing := 0, 0
	for other, otherLane := range inFlight {
		if other.Tenant == j.Tenant {
			own++
		}
		if otherLane == laneFailing {
			alsoFailing++
		}
	}
	switch {
	case len(inFlight) >= f.Places:
		return schedule.AllFull()
	case own >= maxRunningOrganization, lane == laneFailing && alsoFailing >= max(f.Places/2, 1):
		return schedule.OrganizationFull()
	}
	return schedule.Keep()
}

// setFailing records whether the last attempt of the follower failed.
func (l *look) setFailing(failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed {
		l.failing[l.unit] = struct{}{}
		return
	}
	delete(l.failing, l.unit)
}
