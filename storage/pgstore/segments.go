package pgstore

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Events of one append are stored together: a segment is one row with several consecutive events.
const (
	// segmentEvents is the maximum number of events in a segment. A read of one event reads the texts of the whole
	// segment. With twice as many, an event would take a twentieth less space.
	segmentEvents = 16
	// segmentLeast is the minimum number of events in a segment.
	segmentLeast = 4
	// segmentBytes bounds the texts of a segment, for the same reason.
	segmentBytes = 64 << 10
)

// split calls together with the events of each segment, and alone with each of the other events. The segments of an
// append have about the same number of events.
func split(events []storage.Event, together func([]storage.Event), alone func(*storage.Event)) {
	if len(events) == 0 {
		return
	}
	segments := (len(events) + segmentEvents - 1) / segmentEvents
	most := (len(events) + segments - 1) / segments
	for len(events) > 0 {
		n := fitting(events[:min(most, len(events))])
		if n >= segmentLeast {
			together(events[:n])
		} else {
			for i := range n {
				alone(&events[i])
			}
		}
		events = events[n:]
	}
}

// fitting returns the number of events that fit in a segment, at least one.
func fitting(events []storage.Event) int {
	total := 0
	for i := range events {
		total += textsOf(&events[i])
		if total > segmentBytes {
			return max(i, 1)
		}
	}
	return len(events)
}

// names are the columns of table event, for events in segments.
type names struct {
	org, index, name, idempotency array
}

func newNames(rows int) *names {
	const digest = len(storage.KeyDigest{})
	return &names{org: int8s(rows), index: int8s(rows), name: byteas(rows, digest), idempotency: byteas(rows, digest)}
}

func (c *names) addName(t id.Tenant, e *storage.Event) {
	c.org.int8(uint64(t))
	c.index.int8(uint64(e.Index))
	addNames(&c.name, &c.idempotency, e)
}

// addNames adds the digests of an event's ID and idempotency key, which must be unique in the ledger.
func addNames(name, idempotency *array, e *storage.Event) {
	digest := storage.DigestIdempotencyKey(string(e.ID))
	name.bytes(digest[:])
	if key := e.IdempotencyDigest(); key != (storage.KeyDigest{}) {
		idempotency.bytes(key[:])
	} else {
		idempotency.null()
	}
}

func (c *names) values() [][]byte { return values(&c.org, &c.index, &c.name, &c.idempotency) }

// segments are the columns of table segment.
type segments struct {
	codec                             *documentCodec
	scratch                           documentScratch
	members                           []documentMember
	org, index, count, entries, texts array
}

// newSegments returns columns with capacity for the given numbers of rows and events, and approximately the given
// number of bytes of texts.
func newSegments(c *documentCodec, rows, events, texts int) *segments {
	return &segments{
		codec: c, members: make([]documentMember, 0, min(events, segmentEvents)),
		org: int8s(rows), index: int8s(rows), count: int2s(rows),
		entries: byteas(rows, 4+events*entryLen/max(rows, 1)), texts: byteas(1, texts),
	}
}

func (c *segments) addSegment(t id.Tenant, events []storage.Event) {
	c.org.int8(uint64(t))
	c.index.int8(uint64(events[0].Index))
	c.count.int2(int16(len(events)))
	begin := c.entries.open()
	c.members = c.members[:0]
	for i := range events {
		e := &events[i]
		c.entries.wire = append(append(c.entries.wire, e.Entry.Prev[:]...), e.Entry.Record[:]...)
		c.members = append(c.members, documentMember{Columns: e.Columns, document: documentOf(e)})
	}
	c.entries.close(begin)
	begin = c.texts.open()
	c.texts.wire = c.codec.AppendSegment(c.texts.wire, c.members, &c.scratch)
	c.texts.close(begin)
}

func (c *segments) values() [][]byte {
	return values(&c.org, &c.index, &c.count, &c.entries, &c.texts)
}
