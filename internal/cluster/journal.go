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

// NoteKind is a kind of change of a ledger.
type NoteKind byte

const (
	Grown    NoteKind = 'g' // a larger tree was published
	Relisted NoteKind = 'l' // the ledger was created, ended, or got another key
)

// maxWaiting bounds the ledgers in an inbox, about 50 bytes each. Further changes count as missed.
const maxWaiting = 1 << 20

// Inbox collects the ledgers that have changed on other nodes, for one kind of change and one reader. Changes are hints:
// the reader looks at the ledger itself, and may find nothing new. A ledger is in an inbox at most once. A reader that may
// have missed changes is notified of that, and must look at all ledgers.
//
// The methods may be called concurrently. The nil Inbox is valid for a process without other nodes: it never has changes.
type Inbox struct {
	ready chan struct{} // holds a token while the inbox is not empty

	mu      sync.Mutex
	changed map[id.Tenant]struct{}
	missed  bool
}

func newInbox() *Inbox {
	return &Inbox{ready: make(chan struct{}, 1), changed: map[id.Tenant]struct{}{}}
}

// Ready returns a channel that receives when Take has something to return.
func (b *Inbox) Ready() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.ready
}

// Take returns the ledgers that have changed since the last call, each once and in no particular order. missed reports
// whether any other ledger may have changed as well.
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

// addChanged adds a ledger, or records that changes were missed.
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

// Journal receives notes of changes from the other nodes (exchange.Journal). It stores nothing, so a node that fell behind
// gets one note that it may have missed changes.
type Journal struct{ Grown, Relisted *Inbox }

// NewJournal returns a journal with empty inboxes.
func NewJournal() *Journal { return &Journal{Grown: newInbox(), Relisted: newInbox()} }

// A note is the byte of its kind and the tenant in eight bytes, big-endian, or only the byte missedNote.
const (
	missedNote = 'm'
	noteBytes  = 9
)

// NoteOf returns the note for a change of a ledger.
func NoteOf(k NoteKind, t id.Tenant) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(k)}, uint64(t))
}

var errNote = errors.New("malformed note")

// Put adds notes to the inboxes. It ignores notes of unknown kinds.
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

// Notes yields the note for a node that may have missed changes.
func (j *Journal) Notes() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield([]byte{missedNote}, nil) }
}
