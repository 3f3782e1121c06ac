package pgstore

import (
	"encoding/binary"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// heads are the columns of the guard and of the new heads.
type heads struct {
	org, wasSize, wasEpoch, wasConfig, wasRoot array
	size, received, epoch, config, root, last  array
}

func newHeads(rows int) *heads {
	const hash = len(id.Hash{})
	return &heads{
		org: int8s(rows), wasSize: int8s(rows), wasEpoch: int8s(rows), wasConfig: int8s(rows), wasRoot: byteas(rows, hash),
		size: int8s(rows), received: int8s(rows), epoch: int8s(rows), config: int8s(rows), root: byteas(rows, hash), last: byteas(rows, hash),
	}
}

func (h *heads) addHead(b *storage.Batch) {
	h.org.int8(uint64(b.Tenant))
	h.wasSize.int8(uint64(b.Expect.Size))
	h.wasEpoch.int8(b.Expect.Epoch)
	h.wasConfig.int8(b.Expect.ConfigVersion)
	h.wasRoot.bytes(b.Expect.Root[:])
	h.size.int8(uint64(b.Head.Size))
	h.received.int8(uint64(b.Head.LastReceived))
	h.epoch.int8(b.Head.Epoch)
	h.config.int8(b.Head.ConfigVersion)
	h.root.bytes(b.Head.Root[:])
	h.last.bytes(b.Head.Last[:])
}

func (h *heads) values() [][]byte {
	return values(&h.org, &h.wasSize, &h.wasEpoch, &h.wasConfig, &h.wasRoot, &h.size, &h.received, &h.epoch, &h.config, &h.root, &h.last)
}

// events are the columns of table event, for events in separate rows.
type events struct {
	codec                                              *documentCodec
	scratch                                            []byte
	org, index, received, effective, disclosure        array
	entry, name, idempotency, agent, trace, tool, kind array
	documents                                          array
}

// newEvents returns columns with capacity for the given number of rows and bytes of documents.
func newEvents(c *documentCodec, rows, documents int) *events {
	const hash, digest, short = len(id.Hash{}), len(storage.KeyDigest{}), 40
	return &events{
		codec: c,
		org:   int8s(rows), index: int8s(rows), received: int8s(rows), effective: int2s(rows), disclosure: int2s(rows),
		entry: byteas(rows, 2*hash), name: byteas(rows, digest), idempotency: byteas(rows, digest),
		agent: byteas(rows, short), trace: byteas(rows, short), tool: byteas(rows, short), kind: byteas(rows, short),
		documents: byteas(1, documents),
	}
}

func (c *events) addEvent(t id.Tenant, e *storage.Event) {
	c.org.int8(uint64(t))
	c.index.int8(uint64(e.Index))
	c.received.int8(uint64(e.ReceivedAt))
	c.effective.int2(int16(e.Effective))
	c.disclosure.int2(int16(e.Disclosure))
	c.entry.bytes(e.Entry.Prev[:], e.Entry.Record[:])
	addNames(&c.name, &c.idempotency, e)
	c.agent.text(string(e.Agent))
	c.trace.text(string(e.Trace))
	c.tool.text(string(e.Tool))
	c.kind.text(e.ActionKind)
	begin := c.documents.open()
	c.documents.wire, c.scratch = c.codec.Append(c.documents.wire, documentOf(e), c.scratch)
	c.documents.close(begin)
}

func (c *events) values() [][]byte {
	return values(&c.org, &c.index, &c.received, &c.effective, &c.disclosure, &c.entry, &c.name, &c.idempotency, &c.agent, &c.trace, &c.tool, &c.kind, &c.documents)
}

// tiles are the columns of table tile.
type tiles struct {
	org, level, index, root, hashes array
}

func newTiles(rows int) *tiles {
	return &tiles{
		org: int8s(rows), level: int2s(rows), index: int8s(rows),
		root: byteas(rows, len(id.Hash{})), hashes: byteas(rows, storage.TileSize),
	}
}

func (c *tiles) addTile(b *storage.Batch) {
	for t := range lastOf(b.Tiles, sameTile) {
		c.org.int8(uint64(b.Tenant))
		c.level.int2(int16(t.Level))
		c.index.int8(t.Index)
		c.root.bytes(t.Root[:])
		c.hashes.bytes(t.Hashes)
	}
}

func (c *tiles) values() [][]byte { return values(&c.org, &c.level, &c.index, &c.root, &c.hashes) }

// counters are the columns of table counter.
type counters struct {
	org, value, name array
}

func newCounters(rows int) *counters {
	return &counters{org: int8s(rows), value: int8s(rows), name: byteas(rows, 16)}
}

func (c *counters) addCounter(b *storage.Batch) {
	for v := range lastOf(b.Counters, sameCounter) {
		c.org.int8(uint64(b.Tenant))
		c.value.int8(v.Value)
		c.name.text(v.Name)
	}
}

func (c *counters) values() [][]byte { return values(&c.org, &c.value, &c.name) }

func values(columns ...*array) [][]byte {
	all := make([][]byte, len(columns))
	for i, c := range columns {
		all[i] = c.value()
	}
	return all
}

// sameTile and sameCounter identify rows that a statement may write only once. The last one of a batch applies.
func sameTile(a, b *storage.Tile) bool       { return a.Level == b.Level && a.Index == b.Index }
func sameCounter(a, b *storage.Counter) bool { return a.Name == b.Name }

// lastOf yields the last element of each group of equal elements.
func lastOf[V any](all []V, same func(a, b *V) bool) func(func(*V) bool) {
	return func(yield func(*V) bool) {
		for i := range all {
			again := false
			for j := i + 1; j < len(all) && !again; j++ {
				again = same(&all[i], &all[j])
			}
			if !again && !yield(&all[i]) {
				return
			}
		}
	}
}

// number parses an int8 in binary format.
func number(wire []byte) (int64, bool) {
	if len(wire) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(wire)), true
}
