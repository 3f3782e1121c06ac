package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// stagedErasure is a stored event without its envelope, or without its texts, as it will be written.
type stagedErasure struct {
	index id.Index
	value []byte // of familyRecord
	apart bool   // the envelope may be stored under a separate key
}

// stageErasures returns the events that a batch erases, as they will be written. It omits events that are already
// erased. The caller must hold the write lock.
func (e *Engine) stageErasures(part *storage.Batch) (staged []stagedErasure, err error) {
	by := part.ErasedBy()
	for _, at := range slices.Sorted(maps.Keys(by)) {
		s, erased, err := e.stageErasure(part.Tenant, at, by[at])
		if err != nil {
			return nil, fmt.Errorf("erase event %d: %w", at, err)
		}
		if !erased {
			staged = append(staged, s)
		}
	}
	return staged, nil
}

// stageErasure returns the event at an index without its envelope, or reports that it is already erased.
func (e *Engine) stageErasure(t id.Tenant, at, by id.Index) (s stagedErasure, erased bool, err error) {
	s.index = at
	err = e.readValue(appendIndexKey(nil, t, familyRecord, at), func(v []byte) error {
		var event storage.Event
		together, err := parseEvent(v, storage.FieldRecord|storage.FieldEnvelope, &event)
		if erased = event.ErasedBy != 0; err != nil || erased {
			return err
		}
		event.Envelope, event.ErasedBy = nil, by
		s.value, s.apart = appendEvent(nil, &event), !together
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = corruptValue("missing record")
	}
	return s, erased, err
}

// putErasures writes the staged erasures of an accepted batch, and the format of the store, which must be at least the
// format that they require.
func (w *writer) putErasures(b *pebble.Batch, t id.Tenant, staged []stagedErasure, format uint64) {
	_ = b.Set(formatKey(), binary.BigEndian.AppendUint64(nil, format), nil)
	w.b, w.t = b, t
	for i := range staged {
		w.setAt(familyRecord, staged[i].index, staged[i].value)
	}
	for i := range staged {
		if staged[i].apart {
			w.key = appendIndexKey(w.key[:0], t, familyEnvelope, staged[i].index)
			_ = b.Delete(w.key, nil)
		}
	}
	w.b = nil
}

// readErasure reads ErasedBy of an event that has no envelope, neither with its record nor separately. The event may
// have been erased between the two reads.
func (e *Engine) readErasure(t id.Tenant, event *storage.Event) error {
	return e.readValue(appendIndexKey(nil, t, familyRecord, event.Index), func(v []byte) error {
		_, err := parseEvent(v, storage.FieldEnvelope, event)
		return err
	})
}
