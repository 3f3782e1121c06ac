package pebblestore_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// holding returns the files below dir that contain a text.
func holding(t *testing.T, dir string, text []byte) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		b, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil && !os.IsNotExist(err) { // Pebble deletes files in the background
			t.Fatal(err)
		}
		if bytes.Contains(b, text) {
			found = append(found, entry.Name())
		}
	}
	return found
}

// After an erasure and Compact, no file of the store contains the text, whether the store is open or closed. The text
// is searched before, to show that the search finds it. Compressed tables would hide texts from the search.
func TestCompactForgets(t *testing.T) {
	dir := t.TempDir()
	e := open(t, pebblestore.Uncompressed(pebblestore.Options{Dir: dir}))
	red, blue := storagetest.NewWriter(1), storagetest.NewWriter(2)
	short, long, remaining := []byte("a short secret"), []byte("a long secret"), []byte("another's text")
	recorded := []byte("a secret in a record")
	add := func(w *storagetest.Writer, change func(*storage.Batch)) {
		t.Helper()
		b := w.Next(40)
		change(&b)
		wantAll(t, e.Append([]storage.Batch{b}).Wait(), nil)
	}
	add(red, func(b *storage.Batch) {
		b.Events[3].Envelope = short
		b.Events[7].Envelope = append(bytes.Repeat([]byte("x"), 8<<10), long...)
		b.Changes = []storage.Change{{Kind: "k", Key: "a", Value: recorded}}
	})
	add(blue, func(b *storage.Batch) { b.Events[3].Envelope = remaining })
	if err := e.Close(); err != nil { // leaves older tables, and a log
		t.Fatal(err)
	}
	e = open(t, pebblestore.Uncompressed(pebblestore.Options{Dir: dir}))
	for _, text := range [][]byte{short, long, recorded, remaining} {
		if len(holding(t, dir, text)) == 0 {
			t.Fatal("the text is not found before the erasure")
		}
	}
	add(red, func(b *storage.Batch) { b.Events[0].Erases = []id.Range{{Begin: 3, End: 4}, {Begin: 7, End: 8}} })
	if err := e.Write(t.Context(), 1, []storage.Change{{Kind: "k", Key: "a", Value: []byte("{}"), If: 1, Forget: true}}); err != nil {
		t.Fatal(err)
	}
	if len(holding(t, dir, short)) == 0 {
		t.Error("the text is gone before the store was compacted: the test shows nothing")
	}
	if err := e.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := func(when string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			found := append(holding(t, dir, short), slices.Concat(holding(t, dir, long), holding(t, dir, recorded))...)
			if len(found) == 0 {
				break
			}
			if time.Now().After(end) { // files are deleted in the background
				t.Errorf("%s: the text is in %v", when, found)
				break
			}
		}
		if len(holding(t, dir, remaining)) == 0 {
			t.Errorf("%s: the other organization's text is gone", when)
		}
	}
	want("while the store is open")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	want("after it was closed")
}

// When a store opens, it detects whether it has to be compacted: after an erasure, until Compact was called. Archived
// texts and events of others change nothing.
func TestErasuresOverStarts(t *testing.T) {
	dir := t.TempDir()
	e := open(t, pebblestore.Options{Dir: dir})
	red, blue := storagetest.NewWriter(1), storagetest.NewWriter(2)
	add := func(w *storagetest.Writer, erases ...id.Range) {
		t.Helper()
		b := w.Next(40)
		b.Events[0].Erases = erases
		wantAll(t, e.Append([]storage.Batch{b}).Wait(), nil)
	}
	compact := func() {
		t.Helper()
		if err := e.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	put := func(c storage.Change) {
		t.Helper()
		if err := e.Write(t.Context(), 1, []storage.Change{c}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name   string
		do     func()
		erased bool
	}{
		{"events of two organizations", func() { add(red); add(blue) }, false},
		{"a compaction without an erasure", compact, false},
		{"an erasure", func() { add(red, id.Range{Begin: 3, End: 4}) }, true},
		{"a start", func() {}, true},
		{"a compaction", compact, false},
		{"events after it", func() { add(red); add(blue) }, false},
		{"archived texts", func() {
			if err := e.DropTexts(t.Context(), 2, 0, 8); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"an erasure after it", func() { add(blue, id.Range{Begin: 9, End: 10}) }, true},
		{"a compaction and an erasure", func() { compact(); add(blue, id.Range{Begin: 11, End: 12}) }, true},
		{"a compaction after both", compact, false},
		{"a record", func() { put(storage.Change{Kind: "k", Key: "a", Value: []byte("text"), If: storage.AnyVersion}) }, false},
		{"an erased record", func() { put(storage.Change{Kind: "k", Key: "a", If: storage.AnyVersion, Forget: true}) }, true},
		{"a compaction after it", compact, false},
		{"an append that erases a record", func() {
			b := red.Next(1)
			b.Changes = []storage.Change{{Kind: "k", Key: "a", If: storage.AnyVersion, Forget: true}}
			wantAll(t, e.Append([]storage.Batch{b}).Wait(), nil)
		}, true},
		{"the last compaction", compact, false},
	} {
		step.do()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, pebblestore.Options{Dir: dir})
		if got := e.Erasures(); (got != 0) != step.erased {
			t.Errorf("a start after %s: got %d erasures", step.name, got)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
