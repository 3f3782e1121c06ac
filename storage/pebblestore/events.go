package pebblestore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Events implements storage.Ledgers. It uses the size of the ledger at the start of the sequence.
func (e *Engine) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		if err := e.readEvents(ctx, t, begin, end, parts, yield); err != nil {
			yield(storage.Event{}, fmt.Errorf("read events: %w", err))
		}
	}
}

func (e *Engine) readEvents(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields, yield func(storage.Event, error) bool) (err error) {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	defer e.endCall()
	head, found, err := e.readHead(t)
	if err != nil {
		return err
	}
	if !found {
		return storage.ErrNotFound
	}
	end = min(end, head.Size)
	if begin >= end {
		return nil
	}
	if end-begin == 1 {
		event, err := e.readEventAt(t, begin, parts)
		if err == nil {
			yield(event, nil)
		} else if errors.Is(err, storage.ErrNotFound) {
			return corruptValue("missing entry")
		}
		return err
	}
	r, err := e.newEventReader(t, begin, end, parts)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, r.closeColumns()) }()
	for i := begin; i < end; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		event, err := r.readEvent(i)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if !yield(event, nil) {
			return nil
		}
	}
	return nil
}

// EventsAt implements storage.Ledgers.
func (e *Engine) EventsAt(ctx context.Context, t id.Tenant, at []id.Index, of storage.Fields) ([]storage.Event, error) {
	var found []storage.Event
	for _, i := range at {
		for event, err := range e.Events(ctx, t, i, i+1, of) {
			if err != nil {
				return nil, err
			}
			found = append(found, event)
		}
	}
	return found, nil
}

// Entries implements storage.Ledgers.
func (e *Engine) Entries(ctx context.Context, places []storage.Position) []storage.EntryResult {
	if err := e.beginCall(ctx); err != nil {
		return slices.Repeat([]storage.EntryResult{{Err: fmt.Errorf("read entries: %w", err)}}, len(places))
	}
	defer e.endCall()
	found := make([]storage.EntryResult, len(places))
	for i, p := range places {
		event, err := e.readEventAt(p.Tenant, p.Index, 0)
		found[i] = storage.EntryResult{Entry: event.Entry, Err: err}
	}
	return found
}

// readEventAt reads one event with point lookups, which cost less than iterators. It returns ErrNotFound if there is no
// entry.
func (e *Engine) readEventAt(t id.Tenant, i id.Index, parts storage.Fields) (event storage.Event, err error) {
	event.Index = i
	parts &^= storage.FieldLent // the memory of a point lookup is valid only during the lookup
	key := appendIndexKey(make([]byte, 0, prefixLen+indexLen), t, familyEntry, i)
	err = e.readValue(key, func(v []byte) (err error) {
		event.Entry, err = parseEntry(v)
		return err
	})
	enveloped := false
	if err == nil && parts != 0 {
		err = e.readValue(appendIndexKey(key[:0], t, familyRecord, i), func(v []byte) (err error) {
			enveloped, err = parseEvent(v, parts, &event)
			return err
		})
		if errors.Is(err, storage.ErrNotFound) {
			err = corruptValue("missing record")
		}
	}
	if err == nil && !enveloped && parts&storage.FieldEnvelope != 0 {
		err = e.readValue(appendIndexKey(key[:0], t, familyEnvelope, i), func(v []byte) error {
			event.Envelope = append([]byte{}, v...)
			return nil
		})
		if errors.Is(err, storage.ErrNotFound) {
			err = e.readErasure(t, &event)
		}
	}
	if err != nil {
		return storage.Event{}, fmt.Errorf("event %d: %w", i, err)
	}
	return event, nil
}

// eventReader reads up to three families in parallel. records is nil if the caller wants only entries. envelopes is nil
// until the first event whose envelope is not stored with its record.
type eventReader struct {
	parts                       storage.Fields
	entries, records, envelopes *column
	apart                       func(from id.Index) (*column, error) // opens envelopes
	erasure                     func(*storage.Event) error           // readErasure
}

func (e *Engine) newEventReader(t id.Tenant, begin, end id.Index, parts storage.Fields) (r *eventReader, err error) {
	r = &eventReader{parts: parts, apart: func(from id.Index) (*column, error) {
		return e.newColumn(t, familyEnvelope, from, end)
	}, erasure: func(event *storage.Event) error { return e.readErasure(t, event) }}
	if r.entries, err = e.newColumn(t, familyEntry, begin, end); err == nil && parts != 0 {
		r.records, err = e.newColumn(t, familyRecord, begin, end)
	}
	if err != nil {
		return nil, errors.Join(err, r.closeColumns())
	}
	return r, nil
}

func (r *eventReader) closeColumns() error {
	return errors.Join(r.entries.closeIterator(), r.records.closeIterator(), r.envelopes.closeIterator())
}

// readEvent returns event i. i must increase by one from call to call.
func (r *eventReader) readEvent(i id.Index) (storage.Event, error) {
	event := storage.Event{Index: i}
	v, found, err := r.entries.nextValue(i)
	if err == nil && !found {
		err = corruptValue("missing entry")
	}
	if err == nil {
		event.Entry, err = parseEntry(v)
	}
	if err == nil && r.records != nil {
		err = r.readRecord(&event)
	}
	return event, err
}

func (r *eventReader) readRecord(event *storage.Event) error {
	v, found, err := r.records.nextValue(event.Index)
	if err != nil {
		return err
	}
	if !found {
		return corruptValue("missing record")
	}
	enveloped, err := parseEvent(v, r.parts, event)
	if err != nil || enveloped || r.parts&storage.FieldEnvelope == 0 {
		return err
	}
	return r.readApart(event)
}

// readApart reads an envelope that is stored under a separate key, or the erasure if there is none.
func (r *eventReader) readApart(event *storage.Event) (err error) {
	if r.envelopes == nil {
		if r.envelopes, err = r.apart(event.Index); err != nil {
			return err
		}
	}
	v, found, err := r.envelopes.nextValue(event.Index)
	if found {
		event.Envelope = ownedText(v, r.parts)
	} else if err == nil {
		err = r.erasure(event)
	}
	return err
}

// column reads the values of one family by index.
type column struct {
	it   *pebble.Iterator
	at   bool // whether the iterator is at a key
	used bool // whether the value of that key was returned
}

func (e *Engine) newColumn(t id.Tenant, f family, begin, end id.Index) (*column, error) {
	it, err := e.db.NewIter(&pebble.IterOptions{
		LowerBound: appendIndexKey(nil, t, f, begin),
		UpperBound: appendIndexKey(nil, t, f, end),
	})
	if err != nil {
		return nil, readError(err)
	}
	return &column{it: it, at: it.First()}, nil
}

// nextValue returns the value at i, which is valid until the next call, or false if there is none. i must increase from
// call to call, and may skip an index only if the index has no key.
func (c *column) nextValue(i id.Index) (value []byte, found bool, err error) {
	if c.used {
		c.at, c.used = c.it.Next(), false
	}
	if !c.at {
		return nil, false, readError(c.it.Error())
	}
	key := c.it.Key()
	if len(key) != prefixLen+indexLen {
		return nil, false, corruptValue("key")
	}
	if id.Index(binary.BigEndian.Uint64(key[prefixLen:])) != i {
		return nil, false, nil
	}
	v, err := c.it.ValueAndErr()
	if err != nil {
		return nil, false, readError(err)
	}
	c.used = true
	return v, true, nil
}

func (c *column) closeIterator() error {
	if c == nil {
		return nil
	}
	return readError(c.it.Close())
}
