// Package storage is the contract between agentledger and its storage engines:
// append-only ledgers and small versioned records, by tenant. It speaks the
// domain, not SQL and not bytes. Engines lie in folders below this one and all
// pass storage/storagetest.
//
// What always holds:
//
//   - Safety is in the guard: an append is applied only when the stored head has
//     the expected size, root, epoch and config version, and then as a whole.
//   - A tenant's appends take effect in the order of the Append calls, one tenant's
//     part being independent of another's: one may fail and the others go on.
//   - Appends of one stream may wait for each other. No stream waits for another:
//     what keeps one of them from becoming durable keeps none of the others.
//   - What Wait reported as done survives a crash of the process and of the machine.
//   - Ledger reads may show an append before it is durable. Whoever lets ledger
//     data leave the process follows the state that acknowledged appends moved
//     (package log). Record reads (Get, Scan) never show what is not durable yet.
//   - A refusal rests on durable state too: what made Wait answer ErrDuplicate or
//     ErrStale can't vanish in a crash afterwards.
//   - Nothing of one tenant is read or written under another's handle.
//   - After Close every method answers ErrUnavailable, after ErrBroken every
//     method answers ErrBroken.
//
// All methods may be called concurrently. Byte slices passed in are not
// retained after the call that took them returns (for Append: after Wait), and
// slices returned belong to the caller.
package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// What can go wrong, by what the caller can do. Engines wrap these. Those that pass by
// themselves carry what a client is told of them (package fault), so that an error of
// the store is never taken for a defect, whoever hands it on. A package that can say
// more than that wraps them in a fault of its own.
var (
	// ErrNotFound: there is no such ledger, record, tile or event.
	ErrNotFound = errors.New("storage: not found")
	// ErrConflict: the head is not the expected one (somebody else appended, or
	// the caller was fenced). Nothing was applied. Read the head and build anew.
	ErrConflict = errors.New("storage: head moved")
	// ErrDuplicate: an event id or idempotency key is taken. Nothing was applied.
	// Always inside an *ItemError.
	ErrDuplicate = errors.New("storage: duplicate")
	// ErrStale: a record does not have the expected version. Nothing was
	// applied. Always inside an *ItemError.
	ErrStale = errors.New("storage: stale record version")
	// ErrUnknown: it can't be told whether the append was applied. Drop what is
	// known of the ledger, pass a Barrier, read the head and look the batch up.
	ErrUnknown error = &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", RetryAfter: time.Second,
		Message: "It may have been done; look before you repeat it", Err: errors.New("storage: outcome unknown")}
	// ErrUnavailable: the engine can't be reached. Nothing was applied. Retry later.
	ErrUnavailable error = &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
		Message: "The store can't be reached", Err: errors.New("storage: unavailable")}
	// ErrReadOnly: the engine takes no writes at the moment, and reading goes on.
	// Nothing was applied. It is an ErrUnavailable.
	ErrReadOnly error = &fault.Error{Kind: fault.Unavailable, Code: "read_only_mode", RetryAfter: readOnlyRetry,
		Message: "The service is read-only at the moment", Err: ErrUnavailable}
	// ErrBroken: the engine can't go on (a failed sync, for example). The
	// process must end; a retry could acknowledge what was lost.
	ErrBroken error = &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
		Message: "The store can't be reached", Err: errors.New("storage: broken")}
	// ErrCorrupt: a stored value can't be what was written.
	ErrCorrupt = errors.New("storage: corrupt")
)

// readOnlyRetry is when to ask again whether the engine takes writes: somebody has to
// make room, or to repair a volume.
const readOnlyRetry = 10 * time.Second

// ItemError names the item of a batch or change set that stood in the way.
type ItemError struct {
	Item int   // the caller's number, from Event.Item or Change.Item
	Err  error // ErrDuplicate or ErrStale
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Item, e.Err) }

// Unwrap returns ErrDuplicate or ErrStale.
func (e *ItemError) Unwrap() error { return e.Err }

// Head is the end of one ledger. The zero value is "no ledger".
type Head struct {
	Size          id.Index   // number of events
	Root          id.Hash    // RFC 6962 root at Size
	Last          id.Hash    // event hash of the newest entry; the genesis value when empty
	LastReceived  id.Instant // received_at of the newest entry; 0 when empty
	Epoch         uint64     // raised by whoever takes the ledger over; fences older writers
	ConfigVersion uint64     // raised by every change of what events are judged by; from 1
}

// Entry is the content of the public leaf at its index.
type Entry struct {
	Prev   id.Hash // event hash of the entry before; the genesis value for the first
	Record id.Hash // SHA-256 of the record
}

// Columns are what lists and filters need of an event, beside its documents.
type Columns struct {
	ReceivedAt id.Instant
	Agent      id.Agent
	Trace      id.Trace
	Tool       id.Tool
	ActionKind string
	Effective  id.Decision
	Disclosure id.Disclosure
}

// Event is one stored event.
type Event struct {
	Index id.Index
	ID    id.Event
	Entry Entry
	Columns
	Record   []byte // JCS
	Envelope []byte // JCS with signature members; nil when erased

	// Only read by Append.
	IdempotencyKey string // "" for none
	// KeyDigest stands in place of IdempotencyKey for an event that comes from
	// another store, where the text is not known any more; zero for none.
	KeyDigest KeyDigest
	Item      int // the caller's number, for ItemError
}

// Part selects what Events reads beside Index and Entry.
type Part uint8

const (
	// Records asks for ID, Columns and Record.
	Records Part = 1 << iota
	// Envelopes asks for Envelope.
	Envelopes
)

// TileSize is the length of Tile.Hashes in bytes.
const TileSize = 256 * 32

// Tile is a full tile: 256 consecutive hashes of tree level 8*Level.
type Tile struct {
	Level  uint8
	Index  uint64
	Hashes []byte  // TileSize bytes
	Root   id.Hash // the hash at tree level 8*(Level+1), index Index
}

// Counter is a named number of a ledger, written as an absolute value under
// the guard of the append that carries it.
type Counter struct {
	Name  string
	Value uint64
}

// Kind is a family of records, not empty and without a zero byte. Each is owned
// by one package, which alone knows the form of its keys and values.
type Kind string

// Record is a small versioned value, ordered by Key bytewise inside its Kind.
type Record struct {
	Kind    Kind
	Key     string
	Value   []byte
	Version uint64 // 1 when created, also after a deletion, +1 with each change
}

// AnyVersion as Change.If writes whatever the record's version is.
const AnyVersion = ^uint64(0)

// Change is one conditional write of a record.
type Change struct {
	Kind  Kind
	Key   string
	Value []byte // nil deletes
	If    uint64 // the version that must be there; 0: none; AnyVersion: no condition
	// Version is the one that the record gets, for a record that comes from
	// another store; 0: the one after what is there.
	Version uint64
	Item    int // the caller's number, for ItemError
}

// Batch is one tenant's part of an append. The guard is checked first, then
// Events, then Changes, both in their order: two events of one name, and a
// change that rests on a version an earlier one moved, stand in each other's way.
type Batch struct {
	Tenant   id.Tenant
	Expect   Head // Size, Root, Epoch and ConfigVersion are compared; the zero Head means "no ledger yet"
	Head     Head // what the head is afterwards
	Events   []Event
	Tiles    []Tile
	Counters []Counter
	Changes  []Change // of this tenant's records
}

// Pending is an append that is under way.
type Pending interface {
	// Wait returns when the outcome is known: nil for each batch that is durable,
	// else ErrConflict, an *ItemError, ErrUnknown, ErrUnavailable or ErrBroken
	// (wrapped). len(result) is the number of batches, in their order. Wait is
	// called exactly once.
	Wait() []error
}

// Place is where an entry is, or may be.
type Place struct {
	Tenant id.Tenant
	Index  id.Index
}

// Found is what was read at a Place.
type Found struct {
	Entry Entry
	Err   error // ErrNotFound: there is none
}

// Name is an event id or an idempotency key of one ledger.
type Name struct {
	Idempotency bool // an idempotency key, else an event id
	Text        string
	Digest      KeyDigest // of an idempotency key, in place of Text; else zero
}

// NoIndex is the position of a name that is not known.
const NoIndex = ^id.Index(0)

// Ledgers is the ledger half of an engine.
type Ledgers interface {
	// Head returns the head of a ledger, or ErrNotFound.
	Head(ctx context.Context, t id.Tenant) (Head, error)

	// Append applies batches of different tenants, each by itself as a whole or
	// not at all, and returns when their order is fixed. It has no context: an
	// append that is out is never cancelled. A batch that contradicts itself
	// (Batch.Validate) and the second one of a tenant are refused with a plain
	// error. It does not wait for an earlier append of another stream, and Wait
	// waits for the streams of its own batches alone.
	Append(batches []Batch) Pending

	// Stream returns the number of a tenant's stream, a small one from 0 on. Whoever
	// has batches of several streams makes an Append of each stream's, so that no
	// outcome waits for another stream. A stream may change when nothing of the tenant
	// is under way, or when what is under way can't be applied any more.
	Stream(t id.Tenant) int

	// Events yields the events [begin, end) in order; end beyond the stored
	// size ends early. A hole is ErrCorrupt, no ledger ErrNotFound. The sequence
	// stops at the first error.
	Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts Part) iter.Seq2[Event, error]

	// Entries returns what is at each of places, which may be of many ledgers, in
	// their order. What can't be read at one of them keeps nobody from the others.
	// It is for who needs single entries of many ledgers at once.
	Entries(ctx context.Context, places []Place) []Found

	// Lookup returns the index of each name, NoIndex where it is unknown.
	Lookup(ctx context.Context, t id.Tenant, names []Name) ([]id.Index, error)

	// Tiles returns the hashes of full tiles of one level, TileSize bytes each, in
	// the order asked for; a tile that was not written is ErrNotFound.
	Tiles(ctx context.Context, t id.Tenant, level uint8, indices []uint64) ([][]byte, error)

	// TileHashes returns the hashes [begin, end) of one full tile, 32 bytes each,
	// 0 <= begin <= end <= 256; a tile that was not written is ErrNotFound. It is
	// for who needs a few of them: it copies no more.
	TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error)

	// TileRoots returns the roots of the full tiles [begin, end) of one level;
	// one that was not written is ErrNotFound.
	TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error)

	// Counters returns the value of each name, 0 where it was never written.
	Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error)

	// Keys yields the idempotency keys of the events [begin, end), in any order.
	// It is for who copies a ledger, and may read through all keys of the tenant.
	Keys(ctx context.Context, t id.Tenant, begin, end id.Index) iter.Seq2[Key, error]

	// Tenants yields all tenants that have a ledger, in ascending order.
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]

	// Barrier returns when everything that a read could have shown before the
	// call is durable. Whoever takes a ledger over passes one and reads again
	// before it signs anything.
	Barrier(ctx context.Context) error
}

// RecordStore is the record half of an engine. Records of an organization's
// partition that an event stands for are written by Append, with that event.
type RecordStore interface {
	// Get returns a record or ErrNotFound.
	Get(ctx context.Context, t id.Tenant, kind Kind, key string) (Record, error)

	// Scan returns at most limit records with begin <= Key, and Key < end unless
	// end is "", in ascending order of Key.
	Scan(ctx context.Context, t id.Tenant, kind Kind, begin, end string, limit int) ([]Record, error)

	// Partition yields all records of a tenant, ascending by Kind, then Key. It is
	// for who copies them all; a record that changes meanwhile may be seen as it
	// was or as it is.
	Partition(ctx context.Context, t id.Tenant) iter.Seq2[Record, error]

	// Write applies all changes in their order, or none, and returns when they
	// are durable. A version that is not the expected one is an *ItemError with
	// ErrStale. When ctx ends while the write is out, that goes on, and an engine may
	// answer ErrUnknown.
	Write(ctx context.Context, t id.Tenant, changes []Change) error
}

// Engine is a whole storage engine.
type Engine interface {
	Ledgers
	RecordStore

	// Drop takes away all that the store has of an organization, its ledger and its
	// records, as a whole, if its record mark.Kind, mark.Key is there with mark.Version,
	// and returns when that is durable; else ErrStale. It is for what has not arrived
	// as a whole: nobody else uses the tenant meanwhile.
	Drop(ctx context.Context, t id.Tenant, mark Record) error

	// Close waits for what is under way and closes the store. An engine whose server
	// does not answer returns an error after a while, and leaves what is out.
	Close() error
}
