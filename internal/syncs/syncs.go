// Package syncs contains the small concurrency helpers that several packages share: waits that a context can end (Sleep,
// Within), parallel work (RunAll), a lock for each key (KeyLocks), notification of waiting callers (Hub), keys for a slow
// reader (Inbox), a count of calls in flight that Close waits for (InFlight), and the count of work by which a command shows
// its progress (Meter).
//
// Invariants:
//
//   - Every wait on behalf of a caller ends when the caller's context ends. Only RunAll and InFlight.Close wait for the work
//     itself.
//   - Nothing here outlives its callers, neither a goroutine nor memory for unused keys or names. The exception is work that
//     Within has stopped waiting for.
//   - Nothing here coordinates processes. What must hold among several nodes needs a conditional write to the store.
package syncs

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Sleep returns nil after d, or the error of ctx if it ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RunAll runs functions concurrently, and returns when all have returned. It joins their errors in the order of the
// functions, because callers look for certain errors; an errgroup would return only the one that occurred first.
func RunAll(work ...func() error) error {
	var group sync.WaitGroup
	errs := make([]error, len(work))
	for i, do := range work {
		group.Go(func() { errs[i] = do() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Within returns the result of work, or the error of ctx if it ends first. In that case, work continues.
func Within(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
