package pebblestore

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Blocks keep all of their cache space when memtables have grown to their full size: the filters that each event is
// looked up in are read from the disk once. Pebble takes the bytes of memtables from the cache.
func TestBlocksHaveTheirRoomBesideMemtables(t *testing.T) {
	e, err := Open(Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const names = 12
	b := storage.Batch{Tenant: 1, Head: storage.Head{Size: names, Root: id.Hash{1}}}
	for i := range id.Index(names) {
		b.Events = append(b.Events, storage.Event{Index: i, ID: id.Event(fmt.Sprint("e", i))})
	}
	if err := e.Append([]storage.Batch{b}).Wait()[0]; err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 1<<20)
	for i := 0; e.Metrics().MemTableBytes < memTableBytes; i++ { // the first one has 256 KiB, the next one twice as many
		change := storage.Change{Kind: "kind", Key: fmt.Sprint(i), Value: value}
		if err := e.Write(t.Context(), 1, []storage.Change{change}); err != nil || i > 1000 {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	const rounds = 50
	before := e.Metrics()
	for range rounds {
		for i := range id.Index(names) {
			e.recent.drop(e.recent.log.Load())
			if at, err := e.Lookup(t.Context(), 1, []storage.DedupKey{{Text: fmt.Sprint("e", i)}}); err != nil || at[0] != i {
				t.Fatalf("event %d: got %v, %v", i, at, err)
			}
		}
	}
	after := e.Metrics()
	hits, misses := after.CacheHits-before.CacheHits, after.CacheMisses-before.CacheMisses
	if misses > hits/10 {
		t.Errorf("got %d hits and %d misses of the cache, want few misses", hits, misses)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
