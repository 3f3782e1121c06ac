// Package schedule is the time-ordered index of background work: which object of which organization must be examined at
// which time. Worker attempts due entries in parallel, and Every runs a sweep each second. The package hides how entries
// are stored and how organizations share the capacity of a sweep.
//
// Invariants:
//
//   - An entry is a hint. It is written before its object, so the object may be missing, finished or due later. Callers
//     must check the object.
//   - While an object must be examined, it has an entry whose time is not later. So an entry is deleted only after its
//     work is done, or after another entry was written.
//   - Two range reads are enough to find out that nothing is due, for any number of organizations.
//   - Sweep serves organizations in turns. Each organization with due entries gets a turn of 16 finished entries before
//     another one gets a second turn. For example, if one organization has 100,000 due entries, at most 16 of them are
//     finished before the first entry of another organization is examined.
//   - Each process that shares a store sweeps the organizations that it owns. An organization that moves to another
//     process is swept there within sharedGapLife.
//   - A full lane never delays the other lanes of its organization.
//   - The cost of a sweep does not depend on the number of entries that were finished before.
//   - Memory is bounded: 256 ranges without entries, a page of entries, a position for each organization whose turn ended
//     early (at most 1,024), and a number for each organization with new due entries (at most 65,536).
//
// The index is in the service's own partition, with one kind of records for each family of objects. An entry has one of
// two keys there. NoteEntries writes waiting entries, which are ordered by time. Sweep files due entries by organization
// and lane, so that one range read finds the first entries of each organization and lane. One write replaces one key by
// the other, so after a crash an entry still has exactly one key.
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

// Index contains the due entries of one family of objects. Its methods may be called concurrently. Sweeps run one after
// another.
type Index struct {
	Records storage.RecordStore // may be a Share
	Kind    storage.Kind

	// Lane returns the lane of an entry: at most 64 letters and digits. The entries of a lane are processed in the order
	// of time. If Lane is nil, each organization has one lane. For an entry that cannot be read, it should return "".
	Lane func(ctx context.Context, e Entry) string

	mu    sync.Mutex
	first string               // the key at which the next pass starts, "" for the first key
	lanes map[id.Tenant]string // the lane at which the next turn of an organization starts
	gaps  gaps
}

// Share is a record store that several processes share. Sweep skips the entries of organizations that other processes
// own.
type Share interface {
	// Owned reports whether this process owns an organization now. It is called often, and concurrently.
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

	// Since is the time of the entry before it was first postponed, or 0 if it was not postponed.
	Since id.Instant
	// Lane is set by Sweep.
	Lane string
}

// Object returns the name of the object: the part of Name before the first slash. Packages may append to it what saves
// them a read, such as the lane.
func (e Entry) Object() string {
	object, _, _ := strings.Cut(e.Name, "/")
	return object
}

// sinceTime returns the time at which the entry was first due.
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

// Key returns the key of the record of a waiting entry. These keys are ordered by time.
func (e Entry) Key() string {
	return fmt.Sprintf("%016x/%016x/%s", uint64(e.At), uint64(e.Tenant), e.encodeTail())
}

// Record returns the record of a waiting entry. Entries are copied between stores in this form, and older programs wrote
// only this form.
func (e Entry) Record(kind storage.Kind) storage.Record {
	return storage.Record{Kind: kind, Key: e.Key(), Value: []byte("{}")}
}

// ParseEntry parses the key of a waiting entry. It returns storage.ErrCorrupt (wrapped) for any other key.
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

// parseNumber parses 16 lower-case hex digits, the form of the numbers in keys.
func parseNumber(digits string) (n uint64, ok bool) {
	if len(digits) != 16 || strings.ToLower(digits) != digits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil
}

// parseEntryTail parses the end of a key: a name without white space, and optionally a semicolon and a time other than 0.
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

// NoteEntries writes entries. They are durable when it returns nil.
func (x *Index) NoteEntries(ctx context.Context, entries ...Entry) error {
	changes := make([]storage.Change, len(entries))
	for i, e := range entries {
		changes[i] = putChange(x.Kind, e.Key())
	}
	if err := x.Records.Write(ctx, id.Service, changes); err != nil {
		return fmt.Errorf("write due entries: %w", err)
	}
	return nil
}

// Settle applies an outcome to an entry of a sweep whose look returned Keep, as soon as the outcome is known.
func (x *Index) Settle(ctx context.Context, e Entry, outcome Outcome) error {
	changes := x.changesFor(e, outcome)
	if len(changes) == 0 {
		return nil
	}
	if err := x.Records.Write(ctx, id.Service, changes); err != nil {
		return fmt.Errorf("settle due entry: %w", err)
	}
	return nil
}

func putChange(kind storage.Kind, key string) storage.Change {
	return storage.Change{Kind: kind, Key: key, Value: []byte("{}"), If: storage.AnyVersion}
}

func removeChange(kind storage.Kind, key string) storage.Change {
	return storage.Change{Kind: kind, Key: key, If: storage.AnyVersion}
}

// Entries yields all entries, due or not. It stops at the first error and skips malformed entries.
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
