// Package clone copies batches and events of package storage.
//
// Invariants:
//
//   - A copy shares no memory with its original that a caller may write to.
package clone

import (
	"slices"

	"github.com/agentledger/agentledger/storage"
)

// Batch returns a copy of b.
func Batch(b storage.Batch) storage.Batch {
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		b.Events[i] = Event(b.Events[i], storage.FieldRecord|storage.FieldEnvelope)
	}
	b.Tiles = slices.Clone(b.Tiles)
	for i := range b.Tiles {
		b.Tiles[i].Hashes = slices.Clone(b.Tiles[i].Hashes)
	}
	b.Counters = slices.Clone(b.Counters)
	b.Changes = Changes(b.Changes)
	return b
}

// Changes returns a copy of changes.
func Changes(changes []storage.Change) []storage.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Value = Bytes(changes[i].Value)
	}
	return changes
}

// Event returns the parts of e, and nothing that e shares.
func Event(e storage.Event, parts storage.Fields) storage.Event {
	if parts&(storage.FieldRecord|storage.FieldColumns) == 0 {
		e.ID, e.Columns = "", storage.Columns{}
	}
	if parts&storage.FieldRecord == 0 {
		e.Record = nil
	}
	if parts&storage.FieldEnvelope == 0 {
		e.Envelope, e.ErasedBy = nil, 0
	}
	e.Record, e.Envelope, e.Erases = Bytes(e.Record), Bytes(e.Envelope), slices.Clone(e.Erases)
	return e
}

// Bytes keeps nil nil and empty empty.
func Bytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
