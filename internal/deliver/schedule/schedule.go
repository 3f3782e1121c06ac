// Package schedule is the time-ordered index of work: which object of which organization has to be
// examined at which time.
//
// Invariants:
//
//   - An entry is a hint. It is written before its object, so the object may be missing, finished
//     or due later. Callers MUST check the object.
//   - As long as an object has to be examined there is an entry, not later than that. So an entry
//     is deleted only after its work is done, or after a later entry is there.
//   - To know that nothing is due takes two range reads, for any number of organizations.
//   - Sweep shares its work out by organization. Each one with due entries gets a turn of 16
//     finished entries before another one gets a second turn. For example, of 100,000 due entries
//     of one organization at most 16 are finished before the first entry of another one is
//     examined.
//   - Processes that share a store each sweep the organizations that they own. An organization that comes to
//     another process is swept there within sharedGapLife.
//   - Inside an organization a full lane keeps no other lane waiting.
//   - The work of a sweep does not grow with the entries that were finished before.
//   - Memory is bounded: 256 ranges without entries, a page of entries, a position for each
//     organization whose turn ended early (at most 1,024), and a number for each organization with
//     new due entries (at most 65,536).
//
// The index lies in the service's own partition, one kind of records for each family of objects. An
// entry has one of two places there. Waiting entries lie in the order of time; Note writes there.
// Sweep files due entries by organization and lane, so that one range read finds the first entries
// of each organization and lane. One write moves an entry, so a crash leaves it in one of the two
// places.
package schedule

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Index is the due entries of one family of things. Its methods may be called
// concurrently; one Sweep runs at a time.
type Index struct {
	Records storage.RecordStore // may be a Share
	Kind    storage.Kind

	// Lane returns the lane of an entry: letters and digits, at most 64. Entries of one
	// lane wait for each other, in the order of time. Nil: one lane for each
	// organization. It must not fail: an entry that can't be read is in the lane "".
	Lane func(ctx context.Context, e Entry) string

	mu    sync.Mutex
	first string               // the place that the next pass begins at, "" for the first
	lanes map[id.Tenant]string // the same for the next turn of an organization
	gaps  gaps
}

// Share is a record store that several processes share. Sweep leaves the entries of organizations that are not
// owned where they are, for the processes that own these.
type Share interface {
	// Owned reports whether this process does the work of an organization now. It is asked often, and concurrently.
	Owned(t id.Tenant) bool
}

func (x *Index) owns(t id.Tenant) bool {
	s, shared := x.Records.(Share)
	return !shared || s.Owned(t)
}

// Entry is one due entry.
type Entry struct {
	At     id.Instant
	Tenant id.Tenant
	Name   string // begins with the object's name; without white space and semicolons

	// Since is when the entry was due before it was put off for the first time; 0: it
	// was not.
	Since id.Instant
	// Lane is set in entries that Sweep shows.
	Lane string
}

// Object returns the name of the object: the part of Name before the first slash. Packages may append to it what saves
// them a read, such as the lane.
func (e Entry) Object() string {
	object, _, _ := strings.Cut(e.Name, "/")
	return object
}

// sinceTime returns when the entry was due for the first time.
func (e Entry) sinceTime() id.Instant {
	if e.Since != 0 {
		return e.Since
	}
	return e.At
}

// encodeTail returns the end of both keys of an entry.
func (e Entry) encodeTail() string {
	if e.Since == 0 {
		return e.Name
	}
	return fmt.Sprintf("%s;%016x", e.Name, uint64(e.Since))
}

// Key returns the key of a waiting entry's record: those lie in the order of time.
func (e Entry) Key() string {
	return fmt.Sprintf("%016x/%016x/%s", uint64(e.At), uint64(e.Tenant), e.encodeTail())
}

// Record returns the record of a waiting entry. In this form entries are copied
// between stores, and programs before this layout wrote no other.
func (e Entry) Record(kind storage.Kind) storage.Record {
	return storage.Record{Kind: kind, Key: e.Key(), Value: []byte("{}")}
}

// ParseEntry reads an entry from its key; storage.ErrCorrupt (wrapped) for anything else.
func ParseEntry(key string) (e Entry, err error) {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) != 3 {
		return Entry{}, errMalformed()
	}
	at, okAt := parseNumber(parts[0])
	tenant, okTenant := parseNumber(parts[1])
	name, since, okTail := parseEntryTail(parts[2])
	if !okAt || !okTenant || !okTail {
		return Entry{}, errMalformed()
	}
	return Entry{At: id.Instant(at), Tenant: id.Tenant(tenant), Name: name, Since: id.Instant(since)}, nil
}

func errMalformed() error { return fmt.Errorf("due entry: %w", storage.ErrCorrupt) }

// parseNumber reads 16 lower-case hex digits, as Key writes numbers.
func parseNumber(digits string) (n uint64, ok bool) {
	if len(digits) != 16 || strings.ToLower(digits) != digits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil
}

// parseEntryTail reads the end of a key: a name without white space, and perhaps a time other
// than 0 behind a semicolon.
func parseEntryTail(tail string) (name string, since uint64, ok bool) {
	name, digits, putOff := strings.Cut(tail, ";")
	if name == "" || strings.ContainsFunc(name, unicode.IsSpace) {
		return "", 0, false
	}
	if !putOff {
		return name, 0, true
	}
	since, ok = parseNumber(digits)
	return name, since, ok && since != 0
}

// NoteEntries writes entries. All are durable when it returns nil.
func (x *Index) NoteEntries(ctx context.Context, entries ...Entry) error {
	changes := make([]storage.Change, len(entries))
	for i, e := range entries {
		changes[i] = putChange(x.Kind, e.Key())
	}
	if err := x.Records.Write(ctx, id.Service, changes); err != nil {
		return fmt.Errorf("note what is due: %w", err)
	}
	return nil
}

// Settle applies an outcome to an entry that Sweep showed. Callers that answered Keep and found the
// outcome later use it.
func (x *Index) Settle(ctx context.Context, e Entry, outcome Outcome) error {
	changes := x.changesOf(e, outcome)
	if len(changes) == 0 {
		return nil
	}
	if err := x.Records.Write(ctx, id.Service, changes); err != nil {
		return fmt.Errorf("settle what was due: %w", err)
	}
	return nil
}

func putChange(kind storage.Kind, key string) storage.Change {
	return storage.Change{Kind: kind, Key: key, Value: []byte("{}"), If: storage.AnyVersion}
}

func removeChange(kind storage.Kind, key string) storage.Change {
	return storage.Change{Kind: kind, Key: key, If: storage.AnyVersion}
}

// Entries yields all entries, due or not. The sequence stops at the first error; entries that can't
// be read are left out.
func (x *Index) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for r, err := range records.Scan(ctx, x.Records, id.Service, x.Kind, records.Range{}, 0) {
			if err != nil {
				yield(Entry{}, wrapReadError(err))
				return
			}
			e, malformed := parsePlaceKey(r.Key)
			if malformed != nil {
				e, malformed = ParseEntry(r.Key)
			}
			if malformed == nil && !yield(e, nil) {
				return
			}
		}
	}
}
