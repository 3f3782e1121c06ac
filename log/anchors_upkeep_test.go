package log_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// eventually waits for a result of background work.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

func (w *world) read() string {
	w.t.Helper()
	b, err := os.ReadFile(w.journal())
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) notes() int { return strings.Count(w.read(), "anchor ") }

// lengthen rewrites the journal of closed ledgers with the given multiple of its length.
func (w *world) lengthen(times int) {
	w.t.Helper()
	if err := os.WriteFile(w.journal(), bytes.Repeat([]byte(w.read()), times), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// A long journal is compacted while events arrive.
func TestAnchorJournalIsCompactedWhileServing(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a")
	w.ledgers.Close()
	w.lengthen(6_000)
	before := w.notes()
	w.open(log.Options{})
	n := 0
	eventually(t, "a short journal", func() bool {
		n++
		w.mustAppend(red, fmt.Sprint("red-", n))
		w.mustAppend(blue, fmt.Sprint("blue-", n))
		return w.notes() < before/100
	})
	w.ledgers.Close()
	if left, err := filepath.Glob(filepath.Join(w.anchors, ".anchors-*")); len(left) > 0 || err != nil {
		t.Errorf("files left: %v, %v", left, err)
	}
	w.open(log.Options{})
	w.mustAppend(red, "after")
	w.mustAppend(blue, "after")
}

// Notes appended during the copy are in the new journal, and do not wait for the copy.
func TestAnchorsWhileCompacted(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a", "b")
	if err := w.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	older := storagetest.NewModel()
	err := w.ledgers.CompactWhile(t.Context(), func() {
		w.mustAppend(red, "c")
		w.mustAppend(blue, "a")
		older = w.store.(*storagetest.Model).Reopen()
		w.mustAppend(blue, "b")
		if err := w.ledgers.FlushAnchors(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w.mustAppend(red, "d")
	if err := w.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	w.reopen(w.store)
	w.mustAppend(red, "e")
	w.mustAppend(blue, "c")
	w.reopen(older)
	w.refuses(red, "frozen")
	w.refuses(blue, "frozen")
}

// At each moment of a compaction, the journal at the path contains everything flushed before.
func TestAnchorsAtEachMomentOfACompaction(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	compact := make(chan error)
	go func() {
		var err error
		for range 200 {
			err = errors.Join(err, w.ledgers.CompactWhile(t.Context(), nil))
		}
		compact <- err
	}()
	for i := 0; ; i++ {
		w.mustAppend(red, fmt.Sprint("red-", i))
		w.mustAppend(blue, fmt.Sprint("blue-", i))
		if err := w.ledgers.FlushAnchors(); err != nil {
			t.Fatal(err)
		}
		flushed := map[string]bool{string(w.state(red).Checkpoint()): false, string(w.state(blue).Checkpoint()): false}
		read := w.read()
		for note := range flushed {
			if !strings.Contains(read, note) {
				t.Fatalf("flushed, and not in the journal: %s", note)
			}
		}
		select {
		case err := <-compact:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// A compaction that fails leaves the journal unchanged, and a start works without one.
func TestAnchorsThatCannotBeCompacted(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a")
	w.ledgers.Close()
	w.lengthen(6_000)
	before := w.read()
	anchors, err := anchor.Open(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := anchors.CompactIfLong(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err := anchors.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(w.anchors)
	if err != nil || len(files) != 3 { // journals and lock
		t.Errorf("files left: %v, %v", files, err)
	}
	if w.read() != before {
		t.Error("the journal changed")
	}
	w.open(log.Options{})
	w.mustAppend(red, "b")
}

// If the folder or the journal is removed or replaced while the ledgers are open, this is reported and the journal is
// rewritten, including the anchors of idle ledgers.
func TestAnchorsThatAreRemovedWhileServing(t *testing.T) {
	tests := []struct {
		name   string
		remove func(w *world) error
	}{
		{"journal", func(w *world) error { return os.Remove(w.journal()) }},
		{"folder", func(w *world) error { return os.RemoveAll(w.anchors) }},
		{"folder moved away", func(w *world) error { return os.Rename(w.anchors, w.anchors+"-away") }},
		{"journal replaced by another", func(w *world) error {
			return errors.Join(os.Remove(w.journal()), os.WriteFile(w.journal(), []byte("another"), 0o600))
		}},
		{"folder and a file in its place for a while", func(w *world) error {
			err := errors.Join(os.RemoveAll(w.anchors), os.WriteFile(w.anchors, nil, 0o600))
			if flushErr := w.ledgers.FlushAnchors(); flushErr == nil {
				err = errors.Join(err, errors.New("flushed to a place that is gone"))
			}
			return errors.Join(err, os.Remove(w.anchors))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, storagetest.NewModel())
			w.mustAppend(red, "a")
			w.mustAppend(blue, "a")
			if err := w.ledgers.FlushAnchors(); err != nil {
				t.Fatal(err)
			}
			w.mustAppend(red, "b")
			if err := tt.remove(w); err != nil {
				t.Fatal(err)
			}
			if err := w.ledgers.FlushAnchors(); err == nil && w.ledgers.AnchorsLost() == 0 {
				t.Error("anchors were flushed to a file that nobody finds again")
			}
			eventually(t, "the anchors of both, also of the one that is idle", func() bool {
				read, _ := os.ReadFile(w.journal())
				return strings.Contains(string(read), string(w.state(blue).Checkpoint())) && strings.Contains(string(read), string(w.state(red).Checkpoint()))
			})
			if got := w.ledgers.AnchorsLost(); got == 0 {
				t.Error("not counted")
			}
			if other, err := anchor.Open(w.anchors); err == nil {
				other.Close()
				t.Error("another process may use the folder")
			}
			w.mustAppend(red, "c")
			w.reopen(w.store)
			w.mustAppend(red, "d")
			w.mustAppend(blue, "b")
		})
	}
}

// Anchors that are removed just before the process ends are there at the next start.
func TestAnchorsThatAreRemovedBeforeTheEnd(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a")
	if err := os.RemoveAll(w.anchors); err != nil {
		t.Fatal(err)
	}
	if err := w.ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	w.open(log.Options{})
	w.mustAppend(red, "b")
}

// A process that only compares with anchors writes nothing, and does not repair what a crash left.
func TestAnchorsReadOnly(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a")
	if _, err := anchor.OpenReadOnly(w.anchors); err == nil || !strings.Contains(err.Error(), "stop the server") {
		t.Errorf("while they are in use: got %v", err)
	}
	w.ledgers.Close()
	torn := w.read() + "anchor 17 0123456789abcdef\nto"
	if err := os.WriteFile(w.journal(), []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.OpenReadOnly(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anchor.Open(w.anchors); err == nil {
		t.Error("a writer came while they were being read")
	}
	if got, ok := anchors.Size(w.state(red).Identity().Origin); got != 1 || !ok {
		t.Errorf("got size %d, %v, want 1", got, ok)
	}
	if err := anchors.Put(w.state(red).Checkpoint()); err == nil {
		t.Error("put into anchors that are only read")
	}
	if err := anchors.Close(); err != nil {
		t.Fatal(err)
	}
	if w.read() != torn {
		t.Error("the journal changed")
	}
}

// Ledgers that are opened with read-only anchors show the stored state.
func TestLedgersWithAnchorsReadOnly(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "a")
	w.ledgers.Close()
	anchors, err := anchor.OpenReadOnly(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	ledgers, err := log.Open(t.Context(), log.Options{Store: w.store, Keyring: w.keyring, Anchors: anchors, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []id.Tenant{red, blue} {
		if s, err := ledgers.State(t.Context(), tenant); err != nil || s.Fault().Level != log.Healthy {
			t.Errorf("tenant %d: got %v, %v", tenant, s, err)
		}
	}
	if err := ledgers.Close(); err != nil {
		t.Error(err)
	}
}
