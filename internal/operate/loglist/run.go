package loglist

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
)

// Run finds all logs, and then follows changes, until ctx ends. A log that can't be read is retried after the interval.
func (l *List) Run(ctx context.Context) {
	for ctx.Err() == nil {
		var err error
		began := time.Now()
		if !l.found {
			err = l.findAllLogs(ctx)
			l.found = err == nil
		}
		if l.found {
			began = time.Now() // finding has its own pauses
			err = l.updateChanged(ctx)
		}
		if err != nil && ctx.Err() == nil {
			l.Logger.Error("log list not rendered", "err", err)
		}
		l.waitForChange(ctx, l.restAfterList(time.Since(began)), err != nil)
	}
}

// share bounds the processor time for following changes to 1/share of a processor.
const share = 50

// restAfterList returns the pause after work of that duration.
func (l *List) restAfterList(took time.Duration) time.Duration { return max(l.Interval, share*took) }

// waitForChange waits for d, and then until a log changes.
func (l *List) waitForChange(ctx context.Context, d time.Duration, failed bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	if failed || !l.found {
		return
	}
	select {
	case <-ctx.Done():
	case <-l.relisted.Ready():
	case <-l.Others.Ready():
	}
}

// findAllLogs reads the listing of every ledger of the store, using half of one processor.
func (l *List) findAllLogs(ctx context.Context) error {
	for t, err := range l.Store.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("list ledgers: %w", err)
		}
		began := time.Now()
		changed, err := l.readListing(ctx, t)
		if err != nil {
			return err
		}
		l.changed = l.changed || changed
		if err := syncs.Sleep(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// updateChanged reads the listings that changed, and renders the list again if needed.
func (l *List) updateChanged(ctx context.Context) (err error) {
	others, missed := l.Others.Take()
	relisted, _ := l.relisted.Take()
	for _, t := range slices.Concat(relisted, others) {
		l.pending[t] = struct{}{}
	}
	l.found = !missed
	for t := range l.pending {
		changed, failed := l.readListing(ctx, t)
		if failed != nil {
			err = failed // the others are still read
			continue
		}
		l.changed = l.changed || changed
		delete(l.pending, t)
	}
	if !l.changed && l.Current() != nil {
		return err
	}
	made, failed := l.renderList()
	if failed != nil {
		return failed
	}
	l.changed = false
	l.current.Store(made)
	l.logs.Set(float64(made.Logs))
	return err
}

// readListing adds a log to the list or removes it, and reports whether that changed the list.
func (l *List) readListing(ctx context.Context, t id.Tenant) (changed bool, err error) {
	listing, ok, err := l.Ledgers.Listing(ctx, t)
	switch {
	case fault.Is(err, fault.Unavailable) || ctx.Err() != nil:
		return false, fmt.Errorf("read ledger %d: %w", t, err)
	case err != nil: // an error of one log does not stop the others from being listed
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
