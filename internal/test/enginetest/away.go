package enginetest

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Away is a store that becomes unavailable and comes back. While it is away, each call returns storage.ErrUnavailable
// and does nothing. Its methods may be called concurrently.
type Away struct {
	storage.Engine
	mu        sync.Mutex
	armed     bool
	remaining int // calls until it goes
}

// LeaveAfter makes the store unavailable after n more calls.
func (a *Away) LeaveAfter(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed, a.remaining = true, n
}

// Return makes the store available again. It reports whether it was away.
func (a *Away) Return() (away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	away = a.armed && a.remaining < 0
	a.armed = false
	return away
}

// checkReachable counts a call and returns an error if the store does not answer it.
func (a *Away) checkReachable() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.armed {
		return nil
	}
	if a.remaining--; a.remaining < 0 {
		return storage.ErrUnavailable
	}
	return nil
}

// Append implements storage.Ledgers.
func (a *Away) Append(batches []storage.Batch) storage.Pending {
	if a.checkReachable() != nil {
		return silence(len(batches))
	}
	return a.Engine.Append(batches)
}

// Barrier implements storage.Ledgers.
func (a *Away) Barrier(ctx context.Context) error {
	if err := a.checkReachable(); err != nil {
		return err
	}
	return a.Engine.Barrier(ctx)
}

// Head implements storage.Ledgers.
func (a *Away) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if err := a.checkReachable(); err != nil {
		return storage.Head{}, err
	}
	return a.Engine.Head(ctx, t)
}

// Events implements storage.Ledgers.
func (a *Away) Events(ctx context.Context, t id.Tenant, begin, end id.Index,
	parts storage.Fields) iter.Seq2[storage.Event, error] {
	if err := a.checkReachable(); err != nil {
		return func(yield func(storage.Event, error) bool) { yield(storage.Event{}, err) }
	}
	return a.Engine.Events(ctx, t, begin, end, parts)
}

// EventsAt implements storage.Ledgers.
func (a *Away) EventsAt(
	ctx context.Context, t id.Tenant, at []id.Index, parts storage.Fields,
) ([]storage.Event, error) {
	if err := a.checkReachable(); err != nil {
		return nil, err
	}
	return a.Engine.EventsAt(ctx, t, at, parts)
}

// Entries implements storage.Ledgers.
func (a *Away) Entries(ctx context.Context, places []storage.Position) []storage.EntryResult {
	if err := a.checkReachable(); err != nil {
		return slices.Repeat([]storage.EntryResult{{Err: err}}, len(places))
	}
	return a.Engine.Entries(ctx, places)
}

// Lookup implements storage.Ledgers.
func (a *Away) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	if err := a.checkReachable(); err != nil {
		return nil, err
	}
	return a.Engine.Lookup(ctx, t, names)
}

// TileHashes implements storage.Ledgers.
func (a *Away) TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error) {
	if err := a.checkReachable(); err != nil {
		return nil, err
	}
	return a.Engine.TileHashes(ctx, t, level, index, begin, end)
}

// TileRoots implements storage.Ledgers.
func (a *Away) TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error) {
	if err := a.checkReachable(); err != nil {
		return nil, err
	}
	return a.Engine.TileRoots(ctx, t, level, begin, end)
}

// Counters implements storage.Ledgers.
func (a *Away) Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error) {
	if err := a.checkReachable(); err != nil {
		return nil, err
	}
	return a.Engine.Counters(ctx, t, names)
}

// Get implements storage.RecordStore.
func (a *Away) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if err := a.checkReachable(); err != nil {
		return storage.Record{}, err
	}
	return a.Engine.Get(ctx, t, kind, key)
}

// Scan implements storage.RecordStore.
func (a *Away) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string,
	limit int) ([]storage.Record, error) {
	if err := a.checkReachable(); err != nil {
		return nil, err
	}
	return a.Engine.Scan(ctx, t, kind, begin, end, limit)
}

// Write implements storage.RecordStore.
func (a *Away) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if err := a.checkReachable(); err != nil {
		return err
	}
	return a.Engine.Write(ctx, t, changes)
}
