package storage

import (
	"context"
	"errors"
	"iter"

	"github.com/agentledger/agentledger/id"
)

// Engine is a storage engine. Engines that can copy organizations also implement Copier.
type Engine interface {
	Ledgers
	RecordStore

	// Close waits for calls in flight and closes the store. If a server does not respond, it eventually returns an
	// error. Appends in flight then have an unknown outcome.
	Close() error
}

// Ledgers is the ledger half of an engine.
type Ledgers interface {
	Appender
	LedgerReader
	TileReader
}

// Appender appends to ledgers.
type Appender interface {
	// Append starts to apply batches of different tenants and returns when their order is fixed. Each batch is applied
	// completely or not at all, independently of the others. There is no context: an append cannot be canceled. A batch
	// that contradicts itself (Batch.Validate) and a second batch of the same tenant are rejected with an ordinary
	// error. Append does not wait for earlier appends of other streams, and Wait waits only for the streams of its own
	// batches.
	Append(batches []Batch) Pending

	// Stream returns the number of a tenant's stream; the numbers are small and start at 0. A caller with batches of
	// several streams should call Append once for each stream, so that no outcome waits for another stream. A tenant's
	// stream may change only while no append of the tenant is in flight, or while those in flight can no longer be
	// applied.
	Stream(t id.Tenant) int

	// Barrier returns when everything that a read could have shown before the call is durable. A process that takes
	// over a ledger must pass a barrier and read again before it signs anything.
	Barrier(ctx context.Context) error
}

// Pending is an append in flight.
type Pending interface {
	// Wait returns when the outcome is known. The result has one error for each batch, in order: nil if the batch is
	// durable, or else ErrConflict, an *ItemError, ErrUnknown, ErrUnavailable or ErrBroken (wrapped). Wait must be
	// called exactly once.
	Wait() []error
}

// LedgerReader reads ledgers.
type LedgerReader interface {
	eventReader

	// Head returns the head of a ledger, or ErrNotFound.
	Head(ctx context.Context, t id.Tenant) (Head, error)

	// Lookup returns the index of each name, or NoIndex if it is not stored.
	Lookup(ctx context.Context, t id.Tenant, names []DedupKey) ([]id.Index, error)

	// Counters returns the value of each counter, or 0 if it was never written.
	Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error)

	// Tenants yields all tenants that have a ledger, in ascending order.
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// eventReader reads the events of ledgers.
type eventReader interface {
	// Events yields the events [begin, end) in order, or fewer if end is beyond the stored size. A missing event is
	// ErrCorrupt, a missing ledger ErrNotFound. The sequence ends at the first error.
	Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts Fields) iter.Seq2[Event, error]

	// EventsAt returns the events at the given indices, which must be ascending and distinct. It omits indices that are
	// not below the stored size. A missing event is ErrCorrupt, a missing ledger ErrNotFound. Use it for scattered
	// events; the caller bounds their number.
	EventsAt(ctx context.Context, t id.Tenant, at []id.Index, parts Fields) ([]Event, error)

	// Entries returns the entry at each place, in order. The places may be in many ledgers. An entry that cannot be
	// read is reported in its own result and does not affect the others. Use it for single entries of many ledgers.
	Entries(ctx context.Context, places []Position) []EntryResult
}

// TileReader reads the Merkle trees of ledgers. Each hash of an upper tree level is stored twice, as the root of the
// tile below it and in its own tile; each method reads one of the two.
type TileReader interface {
	// TileHashes returns the hashes [begin, end) of a full tile, 32 bytes each, with 0 <= begin <= end <= 256. It
	// returns ErrNotFound if the tile was not written. It copies no other hashes of the tile.
	TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error)

	// TileRoots returns the roots of the full tiles [begin, end) of a level. It returns ErrNotFound if one of them was
	// not written.
	TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error)
}

// RecordStore is the record half of an engine. Records of an organization's partition that an event represents must be
// written by Append, together with that event.
type RecordStore interface {
	// Get returns a record or ErrNotFound.
	Get(ctx context.Context, t id.Tenant, kind Kind, key string) (Record, error)

	// Scan returns at most limit records with keys in [begin, end), or from begin on if end is empty, in ascending
	// order of Key.
	Scan(ctx context.Context, t id.Tenant, kind Kind, begin, end string, limit int) ([]Record, error)

	// Write applies all changes in order, or none, and returns when they are durable. It returns an *ItemError with
	// ErrStale if a record does not have the expected version. If ctx ends while the write is in flight, the write
	// continues, and the engine may return ErrUnknown.
	Write(ctx context.Context, t id.Tenant, changes []Change) error
}

// Copier copies whole organizations between stores. It is optional: without it, organizations of the engine cannot be
// exported, imported or succeeded. storagetest requires it to compare whole partitions.
type Copier interface {
	// IdempotencyKeys yields the idempotency keys of the events [begin, end), in any order. It may read all keys of the
	// tenant.
	IdempotencyKeys(ctx context.Context, t id.Tenant, begin, end id.Index) iter.Seq2[IndexedKey, error]

	// Partition yields all records of a tenant, in ascending order of Kind, then Key. A record that changes during the
	// iteration may be returned in its old or new state.
	Partition(ctx context.Context, t id.Tenant) iter.Seq2[Record, error]

	// Drop atomically removes the ledger and all records of a tenant if its record (mark.Kind, mark.Key) has version
	// mark.Version, and returns when the removal is durable. Otherwise it returns ErrStale. It is for an unfinished
	// import: nothing else may use the tenant during the call.
	Drop(ctx context.Context, t id.Tenant, mark Record) error
}

// errNoCopy is returned by CopierOf for an engine that is not a Copier.
var errNoCopy = errors.New("storage: this engine can't copy organizations")

// CopierOf returns the engine as a Copier, or an error if it is not one.
func CopierOf(engine any) (Copier, error) {
	if c, ok := engine.(Copier); ok {
		return c, nil
	}
	return nil, errNoCopy
}

// PartitionOf is Copier.Partition of an engine. If the engine is not a Copier, the sequence consists of one error.
func PartitionOf(ctx context.Context, engine any, t id.Tenant) iter.Seq2[Record, error] {
	copier, err := CopierOf(engine)
	if err != nil {
		return func(yield func(Record, error) bool) { yield(Record{}, err) }
	}
	return copier.Partition(ctx, t)
}
