package cluster

import (
	"encoding/binary"
	"errors"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
)

// NoteKind is a kind of change of a ledger.
type NoteKind byte

const (
	Grown    NoteKind = 'g' // a larger tree was published
	Relisted NoteKind = 'l' // the ledger was created, ended, or got another key
)

// maxWaiting bounds the ledgers in an inbox, about 50 bytes each.
const maxWaiting = 1 << 20

// Journal receives notes of changes from the other nodes (exchange.Journal). It stores nothing, so a node that fell behind
// gets one note that it may have missed changes.
//
// Its inboxes contain the ledgers that have changed on other nodes. They are hints: the reader looks at the ledger itself,
// and may find nothing new. A reader that missed changes must look at all ledgers.
type Journal struct{ Grown, Relisted *syncs.Inbox[id.Tenant] }

// NewJournal returns a journal with empty inboxes.
func NewJournal() *Journal {
	return &Journal{Grown: syncs.NewInbox[id.Tenant](maxWaiting), Relisted: syncs.NewInbox[id.Tenant](maxWaiting)}
}

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
			j.Grown.Miss()
			j.Relisted.Miss()
		case len(note) != noteBytes:
			return errNote
		case NoteKind(note[0]) == Grown:
			j.Grown.Add(id.Tenant(binary.BigEndian.Uint64(note[1:])))
		case NoteKind(note[0]) == Relisted:
			j.Relisted.Add(id.Tenant(binary.BigEndian.Uint64(note[1:])))
		}
	}
	return nil
}

// Notes yields the note for a node that may have missed changes.
func (j *Journal) Notes() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield([]byte{missedNote}, nil) }
}
