package storagetest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Tests use two organizations wherever one would do.
const (
	alpha id.Tenant = 0x0102030405060708
	beta  id.Tenant = alpha + 1
)

// store is the engine under test, together with its test.
type store struct {
	*testing.T
	Engine
	open Open
}

// reopenStore closes the engine and opens the same data again.
func (s *store) reopenStore() {
	s.Helper()
	if err := s.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	s.Engine = s.open(s.T)
}

// appendBatch makes one append, waits for it and returns its results.
func (s *store) appendBatch(batches ...storage.Batch) []error {
	s.Helper()
	results := s.Append(batches).Wait()
	if got, want := len(results), len(batches); got != want {
		s.Fatalf("append: got %d results, want %d", got, want)
	}
	return results
}

// mustAppend is appendBatch for batches that must succeed.
func (s *store) mustAppend(batches ...storage.Batch) {
	s.Helper()
	for i, err := range s.appendBatch(batches...) {
		if err != nil {
			s.Fatalf("append: batch %d: %v", i, err)
		}
	}
}

// author generates the batches of one ledger. Entries contain the hashes of their records; all other content only has
// the right size.
type author struct {
	tenant id.Tenant
	head   storage.Head
	random *rand.Rand
}

func newAuthor(t id.Tenant) *author {
	return &author{tenant: t, random: rand.New(rand.NewPCG(uint64(t), 1))}
}

func (a *author) randomHash() (h id.Hash) {
	for i := 0; i < len(h); i += 8 {
		binary.LittleEndian.PutUint64(h[i:], a.random.Uint64())
	}
	return h
}

// nextBatch returns a batch of n events that continues the head, and moves the head. The first batch of an author
// creates the ledger.
func (a *author) nextBatch(n int) storage.Batch {
	b := a.draft(n)
	a.head = b.Head
	return b
}

// draft is like nextBatch, but does not move the head.
func (a *author) draft(n int) storage.Batch {
	b := storage.Batch{Tenant: a.tenant, Expect: a.head, Head: a.head}
	for i := range n {
		b.Events = append(b.Events, a.makeEvent(a.head.Size+id.Index(i), i))
		b.Head.LastReceived = b.Events[i].ReceivedAt
	}
	b.Head.Size += id.Index(n)
	b.Head.Root, b.Head.Last = a.randomHash(), a.randomHash()
	b.Head.Epoch, b.Head.ConfigVersion = max(b.Head.Epoch, 1), max(b.Head.ConfigVersion, 1)
	return b
}

func (a *author) makeEvent(i id.Index, item int) storage.Event {
	record := fmt.Appendf(nil, `{"seq":%d,"tenant":%d}`, i+1, a.tenant)
	return storage.Event{
		Index: i, ID: id.Event(fmt.Sprintf("event-%d", i)),
		Entry: storage.Entry{Prev: a.randomHash(), Record: sha256.Sum256(record)},
		Columns: storage.Columns{
			ReceivedAt: 1_700_000_000_000 + id.Instant(i),
			Agent:      id.Agent(fmt.Sprintf("agent-%d", i%3)),
			Trace:      id.Trace(strings.Repeat("t", int(i%129))),
			Tool:       id.Tool([]string{"", "mail.send", "db:read/x"}[i%3]),
			ActionKind: "tool_call", Effective: id.Decision(1 + i%3),
			Disclosure: id.Disclosure(1 + i%3),
		},
		Record:   record,
		Envelope: fmt.Appendf(nil, `{"payload":{"n":%d,"tenant":%d}}`, i, a.tenant),
		Item:     100 + item,
	}
}

// makeTile returns a full tile.
func (a *author) makeTile(level uint8, index uint64) storage.Tile {
	tile := storage.Tile{Level: level, Index: index, Root: a.randomHash()}
	for range storage.TileSize / len(id.Hash{}) {
		h := a.randomHash()
		tile.Hashes = append(tile.Hashes, h[:]...)
	}
	return tile
}

// putChange returns a change that expects the given version.
func putChange(kind storage.Kind, key, value string, version uint64) storage.Change {
	return storage.Change{Kind: kind, Key: key, Value: []byte(value), If: version}
}
