package storagetest

import (
	"slices"

	"github.com/agentledger/agentledger/storage"
)

// CloneBatch returns a copy of b.
func CloneBatch(b storage.Batch) storage.Batch {
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		b.Events[i] = CloneEvent(b.Events[i], storage.FieldRecord|storage.FieldEnvelope)
	}
	b.Tiles = slices.Clone(b.Tiles)
	for i := range b.Tiles {
		b.Tiles[i].Hashes = slices.Clone(b.Tiles[i].Hashes)
	}
	b.Counters = slices.Clone(b.Counters)
	b.Changes = CloneChanges(b.Changes)
	return b
}

// CloneChanges returns a copy of changes.
func CloneChanges(changes []storage.Change) []storage.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Value = CloneBytes(changes[i].Value)
	}
	return changes
}

// CloneEvent returns the parts of e, and nothing that e shares.
func CloneEvent(e storage.Event, parts storage.Fields) storage.Event {
	if parts&(storage.FieldRecord|storage.FieldColumns) == 0 {
		e.ID, e.Columns = "", storage.Columns{}
	}
	if parts&storage.FieldRecord == 0 {
		e.Record = nil
	}
	if parts&storage.FieldEnvelope == 0 {
		e.Envelope, e.ErasedBy = nil, 0
	}
	e.Record, e.Envelope, e.Erases = CloneBytes(e.Record), CloneBytes(e.Envelope), slices.Clone(e.Erases)
	return e
}

// CloneBytes keeps nil nil and empty empty.
func CloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
