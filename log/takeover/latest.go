package takeover

import (
	"context"
	"sync/atomic"
	"time"
)

// A process may answer readers of a ledger whose owner it can't reach. It reads the head from the store, and shows it
// Sight later. The owner, which may be alive, shows no smaller tree afterwards: it shows nothing of a ledger while an
// append has been out for Patience, because that append may be in the store, and seen there by others.
const (
	Patience = 700 * time.Millisecond
	Sight    = time.Second
)

type standInKey struct{}

// WithStandIn returns the context of a read that is to be answered although the process does not own the ledger.
func WithStandIn(ctx context.Context) context.Context {
	return context.WithValue(ctx, standInKey{}, true)
}

// StandsIn reports whether a context is one of WithStandIn.
func StandsIn(ctx context.Context) bool { return ctx.Value(standInKey{}) != nil }

// Outstanding says since when a ledger has had an append whose outcome is not known here. Reads may be concurrent with
// all calls. The caller serializes the other calls. Times are those of a steady clock.
type Outstanding struct {
	since atomic.Int64 // plus 1; 0 for no append
}

// Begin notes an append.
func (o *Outstanding) Begin(now time.Duration) { o.since.CompareAndSwap(0, int64(now)+1) }

// Land notes the outcome of an append that began at a time. Those that are still out began later.
func (o *Outstanding) Land(began time.Duration) { o.since.Store(int64(began) + 1) }

// End notes that no append is out.
func (o *Outstanding) End() { o.since.Store(0) }

// IsLate reports whether an append has been out for Patience.
func (o *Outstanding) IsLate(now func() time.Duration) bool {
	since := o.since.Load()
	return since != 0 && now()-time.Duration(since-1) >= Patience
}
