package cluster

import (
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// NoteKind is a kind of change.
type NoteKind byte

// The kinds of changes.
const (
	Grown    NoteKind = 'g' // a larger tree was published
	Relisted NoteKind = 'l' // the ledger came, ended or got another key
)

// maxWaiting bounds the ledgers of an inbox, at about 50 bytes each.
const maxWaiting = 1 << 20

// Inbox collects the changes of one kind for one reader. Its methods may be called concurrently. The nil Inbox is that
// of a process without other nodes.
type Inbox struct {
	ready chan struct{} // holds a token while there is something to take

	mu      sync.Mutex
	changed map[id.Tenant]struct{}
	missed  bool
}

func newInbox() *Inbox {
	return &Inbox{ready: make(chan struct{}, 1), changed: map[id.Tenant]struct{}{}}
}

// Ready receives when there is something to take.
func (b *Inbox) Ready() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.ready
}

// Take returns the ledgers that changed since the last call, each once and in no order. missed says that any other one
// may have changed as well.
func (b *Inbox) Take() (changed []id.Tenant, missed bool) {
	if b == nil {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	changed, missed = slices.Collect(maps.Keys(b.changed)), b.missed
	b.changed, b.missed = map[id.Tenant]struct{}{}, false
	return changed, missed
}

// addChanged collects a ledger, or that news were missed.
func (b *Inbox) addChanged(t id.Tenant, missed bool) {
	b.mu.Lock()
	if missed || len(b.changed) >= maxWaiting {
		b.missed = true
	} else {
		b.changed[t] = struct{}{}
	}
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Journal takes the notes of the other nodes (exchange.Journal). It keeps nothing, and its own notes say that a node
// may have missed some.
type Journal struct{ Grown, Relisted *Inbox }

// NewJournal returns a journal with empty inboxes.
func NewJournal() *Journal { return &Journal{Grown: newInbox(), Relisted: newInbox()} }

// A note is the byte of its kind and the tenant in eight bytes, big-endian, or the byte missedNote alone.
const (
	missedNote = 'm'
	noteBytes  = 9
)

// NoteOf returns the note of a change of a ledger.
func NoteOf(k NoteKind, t id.Tenant) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(k)}, uint64(t))
}

var errNote = errors.New("a note of an unknown form")

// Put gives notes to the inboxes. Notes of kinds that this program does not know are left out.
func (j *Journal) Put(notes ...[]byte) error {
	for _, note := range notes {
		switch {
		case len(note) == 1 && note[0] == missedNote:
			j.Grown.addChanged(0, true)
			j.Relisted.addChanged(0, true)
		case len(note) != noteBytes:
			return errNote
		case NoteKind(note[0]) == Grown:
			j.Grown.addChanged(id.Tenant(binary.BigEndian.Uint64(note[1:])), false)
		case NoteKind(note[0]) == Relisted:
			j.Relisted.addChanged(id.Tenant(binary.BigEndian.Uint64(note[1:])), false)
		}
	}
	return nil
}

// Notes yields the note for a node that may have missed news.
func (j *Journal) Notes() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield([]byte{missedNote}, nil) }
}
