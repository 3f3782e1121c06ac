package follow

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/schedule"
)

// Bounds of looks under way: in all, of one organization, and of followers whose last try failed.
const (
	maxRunning             = 32
	maxRunningOrganization = 4
	maxRunningFailing      = maxRunning / 2
)

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
	var err error
	f.begin.Do(func() {
		f.moved, f.relisted = f.Ledgers.Moves(), f.Ledgers.Relisted()
		err = f.learnFollowers(ctx)
	})
	if err != nil {
		return err
	}
	f.collectMoved()
	for u, force := range f.takePending() {
		if _, begun := f.beginLook(ctx, &look{Follower: f, unit: u, forced: force}, logger); !begun {
			f.wake(u, force)
		}
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

// learnFollowers finds the followers that have entries. Each is looked at once.
func (f *Follower) learnFollowers(ctx context.Context) error {
	for e, err := range f.due.Entries(ctx) {
		if err != nil {
			return err
		}
		f.Wake(e.Tenant, e.Name)
	}
	return nil
}

// collectMoved notes the followers of the ledgers that moved.
func (f *Follower) collectMoved() {
	moved := slices.Concat(f.moved.Take(), f.relisted.Take())
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range moved {
		for name := range f.known[t] {
			if _, there := f.pending[unit{t, name}]; !there {
				f.pending[unit{t, name}] = false
			}
		}
	}
}

// takePending returns the followers to look at that are not under way, in no order.
func (f *Follower) takePending() map[unit]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[unit]bool)
	for u, force := range f.pending {
		if _, out := f.running[u]; !out {
			all[u] = force
			delete(f.pending, u)
		}
	}
	return all
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

// reserve takes a place for a look, or returns who has no room.
func (f *Follower) reserve(u unit) (outcome schedule.Outcome, begun bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, out := f.running[u]; out {
		return schedule.Keep(), false
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
	case len(f.running) >= maxRunning:
		f.left = true
		return schedule.AllFull(), false
	case own >= maxRunningOrganization, fails && failing >= maxRunningFailing:
		f.left = true
		return schedule.OrganizationFull(), false
	}
	f.running[u] = struct{}{}
	f.addKnown(u)
	return schedule.Keep(), true
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
