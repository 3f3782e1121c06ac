// Package storage is the contract between agentledger and its storage engines:
// append-only ledgers and small versioned records, by tenant. It speaks the
// domain, not SQL and not bytes. Engines lie in folders below this one and all
// pass storage/storagetest.
//
// Invariants:
//
//   - Safety is in the guard: an append is applied only when the stored head has
//     the expected size, root, epoch and config version, and then as a whole.
//   - A tenant's appends take effect in the order of the Append calls. The batches of
//     different tenants are independent: one may fail while the others are applied.
//   - Appends of one stream may wait for each other. No stream waits for another, so
//     a stream that can't become durable does not delay the others.
//   - A batch for which Wait returned nil survives a crash of the process and of the
//     machine.
//   - Ledger reads may show an append before it is durable. A caller that lets ledger
//     data leave the process MUST follow the state that acknowledged appends moved
//     (package log). Record reads (Get, Scan) show durable records only.
//   - A refusal rests on durable state too: the event or record that made Wait answer
//     ErrDuplicate or ErrStale survives a crash.
//   - No data of one tenant is read or written under another's handle.
//   - After Close every method answers ErrUnavailable, after ErrBroken every
//     method answers ErrBroken.
//
// All methods may be called concurrently. Byte slices passed in are not
// retained after the call that took them returns (for Append: after Wait), and
// slices returned belong to the caller.
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

// The errors of engines, by the action that the caller can take. Engines wrap them. The
// errors that pass by themselves carry a message for clients (package fault), so that
// they are never reported as a defect. A package with a better message wraps them in a
// fault of its own.
var (
	// ErrNotFound: there is no such ledger, record, tile or event.
	ErrNotFound = errors.New("storage: not found")
	// ErrConflict: the head is not the expected one (another process appended, or
	// the caller was fenced). Nothing was applied. Read the head and build anew.
	ErrConflict = errors.New("storage: head moved")
	// ErrDuplicate: an event id or idempotency key is taken. Nothing was applied.
	// Always inside an *ItemError.
	ErrDuplicate = errors.New("storage: duplicate")
	// ErrStale: a record does not have the expected version. Nothing was
	// applied. Always inside an *ItemError.
	ErrStale = errors.New("storage: stale record version")
	// ErrUnknown: it can't be told whether the append was applied. Drop the
	// cached state of the ledger, pass a Barrier, read the head and look the batch up.
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
	// process must end; a retry could acknowledge a lost write.
	ErrBroken error = &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
		Message: "The store can't be reached", Err: errors.New("storage: broken")}
	// ErrCorrupt: a stored value is damaged: no engine writes such a value.
	ErrCorrupt = errors.New("storage: corrupt")
)

// readOnlyRetry is when to ask again whether the engine takes writes: the operator has to
// make room or to repair a volume.
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
	Epoch         uint64     // raised by each take-over of the ledger; fences older writers
	ConfigVersion uint64     // raised by every change of the configuration that judges events; from 1
}

// Entry is the content of the public leaf at its index.
type Entry struct {
	Prev   id.Hash // event hash of the entry before; the genesis value for the first
	Record id.Hash // SHA-256 of the record
}

// Columns are the values by which lists and filters find an event.
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

	// ErasedBy is the index of the event that took the envelope away, greater than Index;
	// 0 for an event that was not erased. Read with FieldEnvelope.
	ErasedBy id.Index

	// Archived says that the engine holds neither Record nor Envelope any more, which are nil then. All
	// else is there. Package archive reads them from an object store, so readers see such an event with
	// FieldLocal alone.
	Archived bool

	// Only read by Append.
	// Erases are indices of stored events whose envelopes this event takes away, in the same
	// atomic append: their ErasedBy becomes its index. An event that was erased before keeps
	// its first ErasedBy. All else of the erased events stays as it is.
	Erases         []id.Range
	IdempotencyKey string // "" for none
	// KeyDigest stands in place of IdempotencyKey for an event that comes from
	// another store, where the text is not known any more; zero for none.
	KeyDigest KeyDigest
	Item      int // the caller's number, for ItemError
}

// Fields selects the members that Events reads beside Index and Entry.
type Fields uint8

const (
	// FieldRecord asks for ID, Columns and Record.
	FieldRecord Fields = 1 << iota
	// FieldEnvelope asks for Envelope and ErasedBy.
	FieldEnvelope
	// FieldColumns asks for ID and Columns alone, which are never archived.
	FieldColumns
	// FieldLocal lets an event whose texts are archived come without them, as Archived. For background
	// work that is not worth a read of the archive.
	FieldLocal
	// FieldLent lets Record and Envelope of an event of Events be the engine's memory, which is good up to the
	// next event. An engine may give memory of the caller's own all the same.
	FieldLent
)

// MaxErased is the most indices that the events of one batch may erase together, because an
// engine reads and writes each of these events in the append.
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

// Counter is a named number of a ledger, written as an absolute value under
// the guard of the append that carries it.
type Counter struct {
	Name  string
	Value uint64
}

// Kind is a family of records, not empty and without a zero byte. Each is owned
// by one package, which alone knows the form of its keys and values.
type Kind string

// Derived reports whether records of a kind can be made anew from the ledger at any time. They are not
// copied with an organization.
func (k Kind) Derived() bool { return strings.HasPrefix(string(k), "derived/") }

// Record is a small versioned value, ordered by Key bytewise inside its Kind.
type Record struct {
	Kind    Kind
	Key     string
	Value   []byte
	Version uint64 // 1 when created, also after a deletion, +1 with each change
}

// AnyVersion as Change.If is no condition on the record's version.
const AnyVersion = ^uint64(0)

// Change is one conditional write of a record.
type Change struct {
	Kind  Kind
	Key   string
	Value []byte // nil deletes
	If    uint64 // the version that must be there; 0: none; AnyVersion: no condition
	// Version is the one that the record gets, for a record that comes from
	// another store; 0: the version after the stored one.
	Version uint64
	Item    int // the caller's number, for ItemError
	// Forget means that the change erases a text. An embedded store then reports that its files have to be rewritten,
	// as it does for the erasure of an envelope.
	Forget bool
}

// Forgets reports whether Forget is set in one of the changes.
func Forgets(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Forget })
}

// MaxVersion bounds the versions of records. No record comes near it by changes.
const MaxVersion = 1 << 62

// NextVersion returns the version of a record after the change, 0 if it is deleted. stored is the version before. It returns
// ErrCorrupt if the version would be beyond MaxVersion: a version that wraps to 0 could not be read again.
func (c *Change) NextVersion(stored uint64) (uint64, error) {
	if c.Value == nil {
		return 0, nil
	}
	next := stored + 1
	if c.Version != 0 {
		next = c.Version
	}
	if stored > MaxVersion || next > MaxVersion {
		return 0, fmt.Errorf("%w: %s %q: version %d can't be followed", ErrCorrupt, c.Kind, c.Key, max(stored, next))
	}
	return next, nil
}

// Batch is one tenant's part of an append. The guard is checked first, then
// Events, then Changes, both in their order: two events of one name, and a
// change that rests on a version an earlier one moved, stand in each other's way.
type Batch struct {
	Tenant   id.Tenant
	Expect   Head // Size, Root, Epoch and ConfigVersion are compared; the zero Head means "no ledger yet"
	Head     Head // the head afterwards
	Events   []Event
	Tiles    []Tile
	Counters []Counter
	Changes  []Change // of this tenant's records
}

// Position is where an entry is, or may be.
type Position struct {
	Tenant id.Tenant
	Index  id.Index
}

// EntryResult is the entry at a Position.
type EntryResult struct {
	Entry Entry
	Err   error // ErrNotFound: there is none
}

// DedupKey is an event id or an idempotency key of one ledger.
type DedupKey struct {
	Idempotency bool // an idempotency key, else an event id
	Text        string
	Digest      KeyDigest // of an idempotency key, in place of Text; else zero
}

// NoIndex is the position of a name that is not known.
const NoIndex = ^id.Index(0)
