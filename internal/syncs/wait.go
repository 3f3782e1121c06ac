// Package syncs waits for a time that a context may cut short.
package syncs

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Sleep returns nil after d, or the error of ctx if that ends before.
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

// RunAll does work side by side, and returns when all has ended. The errors are joined in the order of the work, because
// callers look for certain ones: an errgroup would return the first one in time.
func RunAll(work ...func() error) error {
	var group sync.WaitGroup
	errs := make([]error, len(work))
	for i, do := range work {
		group.Go(func() { errs[i] = do() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Within returns the result of work, or the error of ctx if that ends before. The work goes on then.
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
