package pebblestore

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// putBatch writes everything of an accepted batch except its changes, and returns the new head. before is the head that
// the batch continues, and names are the keys of its events' names. Errors are ignored: writing to a Pebble batch
// without an index cannot fail.
//
// It writes family by family, so that keys are mostly ascending: the memtable inserts a key after its predecessor at
// once, and has to search for the position of any other key.
func (w *writer) putBatch(b *pebble.Batch, part *storage.Batch, before *head, names []claim) head {
	w.b, w.t = b, part.Tenant
	next := before.with(part)
	w.key = appendPrefix(w.key[:0], part.Tenant, familyHead)
	w.value = appendHead(w.value[:0], &next)
	w.set(w.key, w.value)
	w.putEvents(part.Events)
	for i := range part.Tiles {
		w.putTile(&part.Tiles[i])
	}
	for i := range names {
		w.setNumber(names[i].key[:], uint64(names[i].index))
	}
	if before.holding && before.held.Name != next.held.Name {
		w.putCounter(before.held) // first: part may contain a newer value
	}
	for _, c := range part.Counters {
		if c.Name != next.held.Name {
			w.putCounter(c)
		}
	}
	w.b = nil
	return next
}

// with returns the head after part. It contains the last of its counters, or else the counter of the previous head.
func (h *head) with(part *storage.Batch) head {
	next := head{Head: part.Head, held: h.held, holding: h.holding}
	if n := len(part.Counters); n > 0 {
		next.held, next.holding = part.Counters[n-1], true
	}
	return next
}

func (w *writer) putCounter(c storage.Counter) {
	w.key = appendCounterKey(w.key[:0], w.t, c.Name)
	w.setNumber(w.key, c.Value)
}

// writer writes one tenant's keys, reusing two buffers. It is protected by the write lock.
type writer struct {
	b     *pebble.Batch
	t     id.Tenant
	key   []byte
	value []byte
}

func (w *writer) setNumber(key []byte, n uint64) {
	w.value = binary.BigEndian.AppendUint64(w.value[:0], n)
	w.set(key, w.value)
}

func (w *writer) set(key, value []byte) { _ = w.b.Set(key, value, nil) }

func (w *writer) putEvents(events []storage.Event) {
	for i := range events {
		e := &events[i]
		w.value = append(append(w.value[:0], e.Entry.Prev[:]...), e.Entry.Record[:]...)
		w.setAt(familyEntry, e.Index, w.value)
	}
	for i := range events {
		w.value = appendEvent(w.value[:0], &events[i])
		w.setAt(familyRecord, events[i].Index, w.value)
	}
	for i := range events {
		if e := &events[i]; e.Envelope != nil && !together(e) {
			w.setAt(familyEnvelope, e.Index, e.Envelope)
		}
	}
}

func (w *writer) setAt(f family, i id.Index, value []byte) {
	w.key = appendIndexKey(w.key[:0], w.t, f, i)
	w.set(w.key, value)
}

func (w *writer) putTile(tile *storage.Tile) {
	w.key = appendTileKey(w.key[:0], w.t, familyTile, tile.Level, tile.Index)
	w.set(w.key, tile.Hashes)
	w.key = appendTileKey(w.key[:0], w.t, familyTileRoot, tile.Level, tile.Index)
	w.set(w.key, tile.Root[:])
}
