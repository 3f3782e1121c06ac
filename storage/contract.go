package storage

import (
	"context"
	"errors"
	"iter"

	"github.com/agentledger/agentledger/id"
)

// Engine is a storage engine. Engines that can copy organizations implement Copier too.
type Engine interface {
	Ledgers
	RecordStore

	// Close waits for the calls that are under way and closes the store. An engine
	// whose server does not answer returns an error after a while. Appends that are out
	// then stay out.
	Close() error
}

// Ledgers is the ledger half of an engine.
type Ledgers interface {
	Appender
	LedgerReader
	TileReader
}

// Appender writes ledgers.
type Appender interface {
	// Append applies batches of different tenants, each by itself as a whole or
	// not at all, and returns when their order is fixed. It has no context: an
	// append that is out is never cancelled. A batch that contradicts itself
	// (Batch.Validate) and the second one of a tenant are refused with a plain
	// error. It does not wait for an earlier append of another stream, and Wait
	// waits for the streams of its own batches alone.
	Append(batches []Batch) Pending

	// Stream returns the number of a tenant's stream, a small one from 0 on. A caller
	// that has batches of several streams calls Append once for each stream, so that no
	// outcome waits for another stream. A stream may change when no append of the tenant
	// is under way, or when those under way can't be applied any more.
	Stream(t id.Tenant) int

	// Barrier returns when everything that a read could have shown before the
	// call is durable. A process that takes a ledger over MUST pass one and read again
	// before it signs anything.
	Barrier(ctx context.Context) error
}

// Pending is an append that is under way.
type Pending interface {
	// Wait returns when the outcome is known: nil for each batch that is durable,
	// else ErrConflict, an *ItemError, ErrUnknown, ErrUnavailable or ErrBroken
	// (wrapped). len(result) is the number of batches, in their order. Wait MUST be
	// called exactly once.
	Wait() []error
}

// LedgerReader reads ledgers.
type LedgerReader interface {
	eventReader

	// Head returns the head of a ledger, or ErrNotFound.
	Head(ctx context.Context, t id.Tenant) (Head, error)

	// Lookup returns the index of each name, NoIndex where it is unknown.
	Lookup(ctx context.Context, t id.Tenant, names []DedupKey) ([]id.Index, error)

	// Counters returns the value of each name, 0 where it was never written.
	Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error)

	// Tenants yields all tenants that have a ledger, in ascending order.
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// eventReader reads the events of ledgers.
type eventReader interface {
	// Events yields the events [begin, end) in order; end beyond the stored
	// size ends early. A hole is ErrCorrupt, no ledger ErrNotFound. The sequence
	// stops at the first error.
	Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts Fields) iter.Seq2[Event, error]

	// EventsAt returns the events at indices in ascending order, each once, and leaves out those that
	// are not below the stored size. A hole is ErrCorrupt, no ledger ErrNotFound. Use it for events
	// that lie apart; the caller bounds their number.
	EventsAt(ctx context.Context, t id.Tenant, at []id.Index, parts Fields) ([]Event, error)

	// Entries returns the entry at each of places, which may be of many ledgers, in
	// their order. An entry that can't be read is reported in its own result and does
	// not affect the others. Use it for single entries of many ledgers.
	Entries(ctx context.Context, places []Position) []EntryResult
}

// TileReader reads the Merkle trees of ledgers. A hash of an upper tree level is stored
// twice, as the root of the tile below it and in its own tile, and each method reads
// one of the two places.
type TileReader interface {
	// TileHashes returns the hashes [begin, end) of one full tile, 32 bytes each,
	// 0 <= begin <= end <= 256; a tile that was not written is ErrNotFound. It copies
	// no other hashes of the tile.
	TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error)

	// TileRoots returns the roots of the full tiles [begin, end) of one level;
	// one that was not written is ErrNotFound.
	TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error)
}

// RecordStore is the record half of an engine. Records of an organization's
// partition that an event stands for are written by Append, with that event.
type RecordStore interface {
	// Get returns a record or ErrNotFound.
	Get(ctx context.Context, t id.Tenant, kind Kind, key string) (Record, error)

	// Scan returns at most limit records with begin <= Key, and Key < end unless
	// end is "", in ascending order of Key.
	Scan(ctx context.Context, t id.Tenant, kind Kind, begin, end string, limit int) ([]Record, error)

	// Write applies all changes in their order, or none, and returns when they
	// are durable. A version that is not the expected one is an *ItemError with
	// ErrStale. When ctx ends while the write is out, that goes on, and an engine may
	// answer ErrUnknown.
	Write(ctx context.Context, t id.Tenant, changes []Change) error
}

// Copier copies whole organizations between stores. An engine may do without it: then
// its organizations can't be exported, imported or succeeded. storagetest needs it,
// because the suite compares whole partitions.
type Copier interface {
	// IdempotencyKeys yields the idempotency keys of the events [begin, end), in any order. It may
	// read through all keys of the tenant.
	IdempotencyKeys(ctx context.Context, t id.Tenant, begin, end id.Index) iter.Seq2[IndexedKey, error]

	// Partition yields all records of a tenant, ascending by Kind, then Key. A record
	// that changes meanwhile may be seen as it was or as it is.
	Partition(ctx context.Context, t id.Tenant) iter.Seq2[Record, error]

	// Drop removes all that the store has of a tenant, its ledger and its records, as a
	// whole, if its record mark.Kind, mark.Key has version mark.Version, and returns
	// when that is durable; else ErrStale. It is for an import that has not ended:
	// nothing else may use the tenant meanwhile.
	Drop(ctx context.Context, t id.Tenant, mark Record) error
}

// errNoCopy: the engine can't copy organizations.
var errNoCopy = errors.New("storage: this engine can't copy organizations")

// CopierOf returns the Copier that an engine is, or an error.
func CopierOf(engine any) (Copier, error) {
	if c, ok := engine.(Copier); ok {
		return c, nil
	}
	return nil, errNoCopy
}

// PartitionOf is Copier.Partition of an engine. The error of an engine that is no Copier
// is the only pair of the sequence.
func PartitionOf(ctx context.Context, engine any, t id.Tenant) iter.Seq2[Record, error] {
	copier, err := CopierOf(engine)
	if err != nil {
		return func(yield func(Record, error) bool) { yield(Record{}, err) }
	}
	return copier.Partition(ctx, t)
}
