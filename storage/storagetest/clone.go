package storagetest

import (
	"slices"

	"github.com/agentledger/agentledger/storage"
)

// cloneBatch returns a copy of b. Like all copies in this file, it shares no memory with the original that a caller may
// write to.
func cloneBatch(b storage.Batch) storage.Batch {
	b.Events = slices.Clone(b.Events)
	for i := range b.Events {
		b.Events[i] = CloneEvent(b.Events[i], storage.FieldRecord|storage.FieldEnvelope)
	}
	b.Tiles = slices.Clone(b.Tiles)
	for i := range b.Tiles {
		b.Tiles[i].Hashes = slices.Clone(b.Tiles[i].Hashes)
	}
	b.Counters = slices.Clone(b.Counters)
	b.Changes = cloneChanges(b.Changes)
	return b
}

// cloneChanges returns a copy of changes.
func cloneChanges(changes []storage.Change) []storage.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Value = cloneBytes(changes[i].Value)
	}
	return changes
}

// CloneEvent returns a copy of the given parts of e.
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
	e.Record, e.Envelope, e.Erases = cloneBytes(e.Record), cloneBytes(e.Envelope), slices.Clone(e.Erases)
	return e
}

// cloneBytes returns a copy of b. A nil slice stays nil, and an empty one stays empty.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
