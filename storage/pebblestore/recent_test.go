package pebblestore

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Names are found at every moment of their way from memory into tables, even by searches in progress, and are removed
// once they are in tables.
func TestNamesThroughFlushes(t *testing.T) {
	const rounds, each = 40, 50
	fs := vfs.NewMem()
	open := func() *Engine {
		e, err := Open(Options{Dir: "data", FS: fs, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := open()
	var head storage.Head
	name := func(i id.Index) storage.DedupKey { return storage.DedupKey{Text: fmt.Sprint("name-", i)} }
	next := func() storage.Batch {
		b := storage.Batch{Tenant: 1, Expect: head, Head: storage.Head{Size: head.Size + each, Root: id.Hash{1, byte(head.Size / each)}}}
		for i := range id.Index(each) {
			b.Events = append(b.Events, storage.Event{Index: head.Size + i, ID: id.Event(name(head.Size + i).Text)})
		}
		return b
	}
	wantAll := func(size id.Index) {
		t.Helper()
		var names []storage.DedupKey
		for i := range size + 1 {
			names = append(names, name(i))
		}
		found, err := e.Lookup(t.Context(), 1, names)
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range found[:size] {
			if at != id.Index(i) {
				t.Fatalf("of %d names: name %d: got %d", size, i, at)
			}
		}
		if found[size] != storage.NoIndex {
			t.Fatalf("name %d: got %d, want none", size, found[size])
		}
	}
	for round := range rounds {
		b := next()
		if err := e.Append([]storage.Batch{b}).Wait()[0]; err != nil {
			t.Fatal(err)
		}
		head = b.Head
		var searches sync.WaitGroup
		for range 2 {
			searches.Go(func() { wantAll(head.Size) })
		}
		if round%2 == 1 {
			if err := e.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		searches.Wait()
		taken := next()
		taken.Events[each-1].ID = id.Event(name(id.Index(round)).Text)
		if err := e.Append([]storage.Batch{taken}).Wait()[0]; !errors.Is(err, storage.ErrDuplicate) {
			t.Fatalf("name %d again: got %v", round, err)
		}
		if round%8 == 7 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open()
			wantAll(head.Size)
		}
	}
	for range 2 * memTablesQueued {
		b := next()
		if err := e.Append([]storage.Batch{b}).Wait()[0]; err != nil {
			t.Fatal(err)
		}
		head = b.Head
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if kept := len(e.recent.generations); kept > memTablesQueued+2 {
		t.Errorf("names of %d logs are kept", kept)
	}
	wantAll(head.Size)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// A search that has started sees names that move to tables in the meantime.
func TestSearchOutlivesNames(t *testing.T) {
	e, err := Open(Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	search := nameSearch{engine: e}
	var key nameKey
	appendNameKey(key[:0], 1, storage.DedupKey{Text: "a"})
	if at, err := search.index(&key); at != storage.NoIndex || err != nil {
		t.Fatalf("got %d, %v, want none", at, err)
	}
	b := storage.Batch{Tenant: 1, Head: storage.Head{Size: 1, Root: id.Hash{1}}, Events: []storage.Event{{ID: "a"}}}
	if err := e.Append([]storage.Batch{b}).Wait()[0]; err != nil {
		t.Fatal(err)
	}
	if at, err := search.index(&key); at != 0 || err != nil {
		t.Errorf("in memory: got %d, %v, want 0", at, err)
	}
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	e.recent.drop(e.recent.log.Load())
	if at, err := search.index(&key); at != 0 || err != nil {
		t.Errorf("in a table: got %d, %v, want 0", at, err)
	}
	if err := errors.Join(search.close(), e.Close()); err != nil {
		t.Error(err)
	}
}
