// Package storage is the contract between agentledger and its storage engines: append-only ledgers and small versioned
// records, by tenant. Its interfaces use domain types, not SQL or bytes, and hide how an engine stores them. Engines are
// in subfolders, and all must pass storage/storagetest. Package log appends; other packages read ledgers and use records.
//
// Invariants:
//
//   - The guard makes appends safe: an append is applied only if the stored head has the expected size, root, epoch and
//     config version, and then completely.
//   - A tenant's appends take effect in the order of the Append calls. The batches of different tenants are independent:
//     one may fail while others are applied.
//   - Appends of one stream may wait for each other. No stream waits for another, so a stream that cannot become durable
//     does not delay the others.
//   - A batch for which Wait returned nil survives a crash of the process and of the machine.
//   - Ledger reads may show an append before it is durable. A caller that lets ledger data leave the process must follow the
//     state of the acknowledged appends (package log). Record reads (Get, Scan) show only durable records.
//   - ErrDuplicate and ErrStale depend only on durable state: the event or record that caused the error survives a crash.
//   - Nothing of one tenant is read or written under another tenant's handle.
//   - After Close, every method returns ErrUnavailable. After ErrBroken, every method returns ErrBroken.
//
// All methods may be called concurrently. An engine does not retain byte slices that it was passed after the call returns
// (for Append: after Wait returns). Returned slices belong to the caller.
package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// The errors of engines, by what the caller can do. Engines wrap them. Temporary errors carry a message for clients
// (package fault), so that they are never reported as defects. A package with a better message wraps them in its own
// fault.
var (
	// ErrNotFound means that the ledger, record, tile or event does not exist.
	ErrNotFound = errors.New("storage: not found")
	// ErrConflict means that the head is not the expected one: another process appended, or the caller was fenced.
	// Nothing was applied. Read the head and build the batch again.
	ErrConflict = errors.New("storage: head moved")
	// ErrDuplicate means that an event ID or idempotency key is taken. Nothing was applied. It is always inside an
	// *ItemError.
	ErrDuplicate = errors.New("storage: duplicate")
	// ErrStale means that a record does not have the expected version. Nothing was applied. It is always inside an
	// *ItemError.
	ErrStale = errors.New("storage: stale record version")
	// ErrUnknown means that the append may or may not have been applied. Drop the cached state of the ledger, pass a
	// Barrier, read the head and look up the batch's names.
	ErrUnknown error = &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", RetryAfter: time.Second,
		Message: "It may have taken effect: check before you retry", Err: errors.New("storage: outcome unknown")}
	// ErrUnavailable means that the engine cannot be reached. Nothing was applied. Retry later.
	ErrUnavailable error = &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
		Message: "The store can't be reached", Err: errors.New("storage: unavailable")}
	// ErrReadOnly means that the engine currently rejects writes; reads work. Nothing was applied. It wraps
	// ErrUnavailable.
	ErrReadOnly error = &fault.Error{Kind: fault.Unavailable, Code: "read_only_mode", RetryAfter: readOnlyRetry,
		Message: "The service is read-only at the moment", Err: ErrUnavailable}
	// ErrBroken means that the engine cannot continue, for example because a sync failed. The process must exit: a
	// retry could acknowledge a lost write.
	ErrBroken error = &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
		Message: "The store can't be reached", Err: errors.New("storage: broken")}
	// ErrCorrupt means that a stored value is damaged: no engine writes such a value.
	ErrCorrupt = errors.New("storage: corrupt")
)

// readOnlyRetry is when a client may retry a write. The operator has to free space or repair a volume in the meantime.
const readOnlyRetry = 10 * time.Second

// ItemError identifies the item of a batch or change set that was rejected.
type ItemError struct {
	Item int   // the caller's number: Event.Item or Change.Item
	Err  error // ErrDuplicate or ErrStale
}

func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Item, e.Err) }

// Unwrap returns ErrDuplicate or ErrStale.
func (e *ItemError) Unwrap() error { return e.Err }

// Head is the end of a ledger. The zero value means that the ledger does not exist.
type Head struct {
	Size          id.Index   // number of events
	Root          id.Hash    // RFC 6962 root hash at Size
	Last          id.Hash    // event hash of the last entry; the genesis value if empty
	LastReceived  id.Instant // received_at of the last entry; 0 if empty
	Epoch         uint64     // incremented by each take-over of the ledger; fences earlier writers
	ConfigVersion uint64     // incremented by each change of the configuration that events are judged by; starts at 1
}

// Entry is the content of the public leaf at its index.
type Entry struct {
	Prev   id.Hash // event hash of the previous entry; the genesis value for the first entry
	Record id.Hash // SHA-256 of the record
}

// Columns are the values that lists and filters find an event by.
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
	Envelope []byte // JCS with signature members; nil if erased

	// ErasedBy is the index of the event that erased the envelope, greater than Index, or 0 if the envelope was not
	// erased. It is read with FieldEnvelope.
	ErasedBy id.Index

	// Archived means that the engine no longer holds Record and Envelope, which are nil; all other fields are set.
	// Package archive reads the texts from an object store. Only readers that pass FieldLocal see such an event.
	Archived bool

	// The following fields are used only by Append.
	//
	// Erases lists stored events whose envelopes this event erases, in the same atomic append: their ErasedBy becomes
	// its index. An event that was already erased keeps its ErasedBy. All other fields of the erased events are
	// unchanged.
	Erases         []id.Range
	IdempotencyKey string // "" if there is none
	// KeyDigest replaces IdempotencyKey for an event from another store, where the text of the key is no longer known.
	// Zero if there is none.
	KeyDigest KeyDigest
	Item      int // the caller's number, for ItemError
}

// Fields selects the fields that Events reads in addition to Index and Entry.
type Fields uint8

const (
	// FieldRecord selects ID, Columns and Record.
	FieldRecord Fields = 1 << iota
	// FieldEnvelope selects Envelope and ErasedBy.
	FieldEnvelope
	// FieldColumns selects only ID and Columns, which are never archived.
	FieldColumns
	// FieldLocal lets an event whose texts are archived be returned without them, as Archived. Use it for background
	// work that is not worth reading the archive.
	FieldLocal
	// FieldLent allows Events to return Record and Envelope in the engine's memory, which is valid until the next
	// event. An engine may return the caller's own memory nevertheless.
	FieldLent
)

// MaxErased bounds the total number of events that the events of one batch may erase, because the engine reads and
// rewrites each of them during the append.
const MaxErased = 4096

// TileSize is the length of Tile.Hashes in bytes.
const TileSize = 256 * 32

// Tile is a full tile: 256 consecutive hashes of tree level 8*Level.
type Tile struct {
	Level  uint8
	Index  uint64
	Hashes []byte  // TileSize bytes
	Root   id.Hash // the hash at tree level 8*(Level+1), index Index
}

// Counter is a named number of a ledger. An append writes its absolute value, under the append's guard.
type Counter struct {
	Name  string
	Value uint64
}

// Kind is a family of records: a non-empty string without zero bytes. Each is owned by one package, and only that
// package knows the format of its keys and values.
type Kind string

// Derived reports whether the records of a kind can be rebuilt from the ledger at any time. They are not copied with an
// organization.
func (k Kind) Derived() bool { return strings.HasPrefix(string(k), "derived/") }

// Record is a small versioned value. Records of a Kind are ordered bytewise by Key.
type Record struct {
	Kind    Kind
	Key     string
	Value   []byte
	Version uint64 // 1 after a creation, also of a deleted record; incremented by each change
}

// AnyVersion, as Change.If, makes a change unconditional.
const AnyVersion = ^uint64(0)

// Change is one conditional write of a record.
type Change struct {
	Kind  Kind
	Key   string
	Value []byte // nil deletes
	If    uint64 // expected version; 0: the record must be absent; AnyVersion: no condition
	// Version is the new version, for a record from another store. If zero, it is the stored version plus one.
	Version uint64
	Item    int // the caller's number, for ItemError
	// Forget means that the change erases a text. An embedded store then reports that its files must be rewritten, as
	// it does after the erasure of an envelope.
	Forget bool
}

// Forgets reports whether any of the changes has Forget set.
func Forgets(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Forget })
}

// MaxVersion bounds the versions of records. Ordinary changes never reach it.
const MaxVersion = 1 << 62

// NextVersion returns the version of a record after the change, or 0 if the change deletes it. stored is the version
// before the change. It returns ErrCorrupt if the version would exceed MaxVersion: a version that wraps to 0 could not
// be read again.
func (c *Change) NextVersion(stored uint64) (uint64, error) {
	if c.Value == nil {
		return 0, nil
	}
	next := stored + 1
	if c.Version != 0 {
		next = c.Version
	}
	if stored > MaxVersion || next > MaxVersion {
		return 0, fmt.Errorf("%w: %s %q: version %d is too large", ErrCorrupt, c.Kind, c.Key, max(stored, next))
	}
	return next, nil
}

// Batch is one tenant's part of an append. The guard is checked first, then Events, then Changes, each in order. So a
// batch is rejected if two events have the same name, or if a change expects a version that an earlier change has
// replaced.
type Batch struct {
	Tenant   id.Tenant
	Expect   Head // Size, Root, Epoch and ConfigVersion are compared; the zero Head means that the ledger does not exist yet
	Head     Head // the head after the append
	Events   []Event
	Tiles    []Tile
	Counters []Counter
	Changes  []Change // to this tenant's records
}

// Position identifies an entry that may exist.
type Position struct {
	Tenant id.Tenant
	Index  id.Index
}

// EntryResult is the entry at a Position, or the reason why it cannot be read.
type EntryResult struct {
	Entry Entry
	Err   error // ErrNotFound if the entry does not exist
}

// DedupKey is an event ID or an idempotency key of a ledger.
type DedupKey struct {
	Idempotency bool // whether it is an idempotency key rather than an event ID
	Text        string
	Digest      KeyDigest // of an idempotency key, replaces Text; otherwise zero
}

// NoIndex is the result for a name that is not stored.
const NoIndex = ^id.Index(0)
