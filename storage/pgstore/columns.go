package pgstore

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// heads are the columns of the guard and of the heads behind it.
type heads struct {
	org, wasSize, wasEpoch, wasConfig, size, received, epoch, config []int64
	wasRoot, root, last                                              [][]byte
}

func newHeads(rows int) *heads {
	n, b := numbers(8, rows), bytes(3, rows)
	return &heads{
		org: n[0], wasSize: n[1], wasEpoch: n[2], wasConfig: n[3], size: n[4], received: n[5], epoch: n[6], config: n[7],
		wasRoot: b[0], root: b[1], last: b[2],
	}
}

func (h *heads) add(b *storage.Batch) {
	h.org = append(h.org, int64(b.Tenant))
	h.wasSize = append(h.wasSize, int64(b.Expect.Size))
	h.wasEpoch = append(h.wasEpoch, int64(b.Expect.Epoch))
	h.wasConfig = append(h.wasConfig, int64(b.Expect.ConfigVersion))
	h.wasRoot = append(h.wasRoot, b.Expect.Root[:])
	h.size = append(h.size, int64(b.Head.Size))
	h.received = append(h.received, int64(b.Head.LastReceived))
	h.epoch = append(h.epoch, int64(b.Head.Epoch))
	h.config = append(h.config, int64(b.Head.ConfigVersion))
	h.root = append(h.root, b.Head.Root[:])
	h.last = append(h.last, b.Head.Last[:])
}

// events are the columns of table event.
type events struct {
	org, index, received                                                          []int64
	effective, disclosure                                                         []int16
	prev, recordHash, id, idempotency, agent, trace, tool, kind, record, envelope [][]byte
}

func newEvents(rows int) *events {
	n, b := numbers(3, rows), bytes(10, rows)
	return &events{
		org: n[0], index: n[1], received: n[2], effective: make([]int16, 0, rows), disclosure: make([]int16, 0, rows),
		prev: b[0], recordHash: b[1], id: b[2], idempotency: b[3], agent: b[4], trace: b[5], tool: b[6], kind: b[7], record: b[8], envelope: b[9],
	}
}

func (c *events) add(t id.Tenant, e *storage.Event) {
	c.org = append(c.org, int64(t))
	c.index = append(c.index, int64(e.Index))
	c.received = append(c.received, int64(e.ReceivedAt))
	c.effective = append(c.effective, int16(e.Effective))
	c.disclosure = append(c.disclosure, int16(e.Disclosure))
	c.prev = append(c.prev, e.Entry.Prev[:])
	c.recordHash = append(c.recordHash, e.Entry.Record[:])
	c.id = append(c.id, []byte(e.ID))
	c.idempotency = append(c.idempotency, keyName(e.Key()))
	c.agent = append(c.agent, []byte(e.Agent))
	c.trace = append(c.trace, []byte(e.Trace))
	c.tool = append(c.tool, []byte(e.Tool))
	c.kind = append(c.kind, []byte(e.ActionKind))
	c.record = append(c.record, notNil(e.Record))
	c.envelope = append(c.envelope, e.Envelope)
}

// notNil makes nil empty, for columns that are never NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// tiles are the columns of table tile.
type tiles struct {
	org, index   []int64
	level        []int16
	root, hashes [][]byte
}

func newTiles(rows int) *tiles {
	n, b := numbers(2, rows), bytes(2, rows)
	return &tiles{org: n[0], index: n[1], level: make([]int16, 0, rows), root: b[0], hashes: b[1]}
}

func (c *tiles) add(b *storage.Batch) {
	for t := range lastOf(b.Tiles, sameTile) {
		c.org = append(c.org, int64(b.Tenant))
		c.level = append(c.level, int16(t.Level))
		c.index = append(c.index, int64(t.Index))
		c.root = append(c.root, t.Root[:])
		c.hashes = append(c.hashes, t.Hashes)
	}
}

// counters are the columns of table counter.
type counters struct {
	org, value []int64
	name       [][]byte
}

func newCounters(rows int) *counters {
	n, b := numbers(2, rows), bytes(1, rows)
	return &counters{org: n[0], value: n[1], name: b[0]}
}

func (c *counters) add(b *storage.Batch) {
	for v := range lastOf(b.Counters, sameCounter) {
		c.org = append(c.org, int64(b.Tenant))
		c.value = append(c.value, int64(v.Value))
		c.name = append(c.name, []byte(v.Name))
	}
}
