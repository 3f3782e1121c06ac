package takeover

import (
	"context"
	"sync/atomic"
	"time"
)

// A process may serve reads of a ledger whose owner it can't reach. It reads the head from the store and shows it after
// Sight. The owner may be alive, and shows no smaller tree afterwards: while an append has been in flight for Patience,
// the owner shows nothing of the ledger, because readers may have seen that append in the store.
const (
	Patience = 700 * time.Millisecond
	Sight    = time.Second
)

type standInKey struct{}

// WithStandIn returns a context for a read that a process answers even if it does not own the ledger.
func WithStandIn(ctx context.Context) context.Context {
	return context.WithValue(ctx, standInKey{}, true)
}

// StandsIn reports whether ctx comes from WithStandIn.
func StandsIn(ctx context.Context) bool { return ctx.Value(standInKey{}) != nil }

// Outstanding is the time since which a ledger has had an append with an unknown outcome. Reads may be concurrent with
// all calls; the caller must serialize the other calls. Times are of a monotonic clock.
type Outstanding struct {
	since atomic.Int64 // plus 1; 0 if there is no append
}

// Begin records an append.
func (o *Outstanding) Begin(now time.Duration) { o.since.CompareAndSwap(0, int64(now)+1) }

// Land records the outcome of an append that began at the given time. Appends still in flight began later.
func (o *Outstanding) Land(began time.Duration) { o.since.Store(int64(began) + 1) }

// End records that no append is in flight.
func (o *Outstanding) End() { o.since.Store(0) }

// IsLate reports whether an append has been in flight for Patience.
func (o *Outstanding) IsLate(now func() time.Duration) bool {
	since := o.since.Load()
	return since != 0 && now()-time.Duration(since-1) >= Patience
}
