package pgstore

import (
	"github.com/agentledger/agentledger/storage"
)

// columns contains all columns of an append.
type columns struct {
	heads    *heads
	events   *events
	names    *names
	segments *segments
	tiles    *tiles
	counters *counters
}

// newColumns returns columns with capacity for parts.
func newColumns(codec *documentCodec, parts []part) *columns {
	var n layout
	for _, p := range parts {
		n.appendBatch(p.Batch)
	}
	return &columns{
		heads: newHeads(len(parts)), events: newEvents(codec, n.alone, n.documents),
		names: newNames(n.together), segments: newSegments(codec, n.segments, n.together, n.texts),
		tiles: newTiles(n.tiles), counters: newCounters(n.counters),
	}
}

func (c *columns) appendBatch(b *storage.Batch) {
	c.heads.addHead(b)
	split(b.Events,
		func(together []storage.Event) {
			c.segments.addSegment(b.Tenant, together)
			for i := range together {
				c.names.addName(b.Tenant, &together[i])
			}
		},
		func(e *storage.Event) { c.events.addEvent(b.Tenant, e) })
	c.tiles.addTile(b)
	c.counters.addCounter(b)
}

// layout counts the rows that batches need, and estimates the bytes of their texts.
type layout struct {
	alone, documents          int // events in separate rows, bytes of their documents
	segments, together, texts int // segments and the events in them
	tiles, counters           int
}

func (n *layout) appendBatch(b *storage.Batch) {
	split(b.Events,
		func(together []storage.Event) {
			n.segments, n.together = n.segments+1, n.together+len(together)
			for i := range together {
				n.texts += 64 + textsOf(&together[i])/2
			}
		},
		func(e *storage.Event) { n.alone, n.documents = n.alone+1, n.documents+64+textsOf(e)*2/3 })
	n.tiles, n.counters = n.tiles+len(b.Tiles), n.counters+len(b.Counters)
}

func textsOf(e *storage.Event) int { return len(e.Record) + len(e.Envelope) }
