package loglist

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
)

// Run finds all logs and then follows what comes, goes and gets another key, until ctx
// ends. What can't be read is looked at again after the interval.
func (l *List) Run(ctx context.Context) {
	for found := false; ctx.Err() == nil; {
		var err error
		began := time.Now()
		if !found {
			err = l.find(ctx)
			found = err == nil
		}
		if found {
			began = time.Now() // finding has its own pauses
			err = l.follow(ctx)
		}
		if err != nil && ctx.Err() == nil {
			l.Logger.Error("log list not made", "err", err)
		}
		l.rest(ctx, l.restAfter(time.Since(began)), err != nil)
	}
}

// share is the part of a processor that following takes at most: one of so many.
const share = 50

// restAfter returns how long to rest after a look that took so long.
func (l *List) restAfter(took time.Duration) time.Duration { return max(l.Interval, share*took) }

// rest waits for a while and then until there is something to look at.
func (l *List) rest(ctx context.Context, d time.Duration, failed bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	if failed {
		return
	}
	select {
	case <-ctx.Done():
	case <-l.relisted.Ready():
	}
}

// find looks at every ledger of the store, with half of one processor.
func (l *List) find(ctx context.Context) error {
	for t, err := range l.Store.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("list ledgers: %w", err)
		}
		began := time.Now()
		if _, err := l.look(ctx, t); err != nil {
			return err
		}
		if err := wait.For(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// follow looks at what was relisted, and makes the list anew if that changed it.
func (l *List) follow(ctx context.Context) (err error) {
	for _, t := range l.relisted.Take() {
		l.pending[t] = struct{}{}
	}
	changed := l.Current() == nil
	for t := range l.pending {
		news, failed := l.look(ctx, t)
		if failed != nil {
			err = failed // the others are looked at all the same
			continue
		}
		changed = changed || news
		delete(l.pending, t)
	}
	if !changed {
		return err
	}
	made, failed := l.render()
	if failed != nil {
		return failed
	}
	l.current.Store(made)
	l.logs.Set(float64(made.Logs))
	return err
}

// look takes a log into the list, or out of it, and reports whether that is news.
func (l *List) look(ctx context.Context, t id.Tenant) (news bool, err error) {
	listing, ok, err := l.Ledgers.Listing(ctx, t)
	switch {
	case fault.Is(err, fault.Unavailable) || ctx.Err() != nil:
		return false, fmt.Errorf("look at ledger %d: %w", t, err)
	case err != nil: // its own flaw: the others are listed all the same
		l.Logger.Error("log not listed", "tenant", t, "err", err)
		ok = false
	}
	before := l.keys[t]
	if !ok {
		delete(l.keys, t)
		return before != "", nil
	}
	key := listing.Key.String()
	l.keys[t] = key
	return key != before, nil
}
