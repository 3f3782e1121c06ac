// Package wait waits for a time that a context may cut short.
package wait

import (
	"context"
	"time"
)

// For returns nil after d, or the error of ctx if that ends before.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
