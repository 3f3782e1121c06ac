package pebblestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// TestCrash takes images of what a disk could contain after a crash, at random moments of pipelined appends to two
// ledgers, and opens them: every acknowledged append is there, and what is there beyond it is a prefix of the other
// appends. Records are large enough to cause flushes.
func TestCrash(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { crash(t, seed) })
	}
}

func crash(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 4))
	fs := enginetest.NewCrashDisk()
	e := open(t, pebblestore.Options{Dir: "a/b", FS: fs})
	writers := []*writer{newWriter(1), newWriter(2)}
	var history [][]storage.Batch
	var pending []storage.Pending
	waited := 0
	for range 40 + random.IntN(40) {
		batches := []storage.Batch{heavy(writers[0].next(1 + random.IntN(3))), heavy(writers[1].next(random.IntN(3)))}
		history, pending = append(history, batches), append(pending, e.Append(batches))
		for waited < len(pending) && random.IntN(3) > 0 {
			for _, err := range pending[waited].Wait() {
				if err != nil {
					t.Fatal(err)
				}
			}
			waited++
		}
	}
	image := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
	for _, p := range pending[waited:] {
		p.Wait()
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	after := open(t, pebblestore.Options{Dir: "a/b", FS: image})
	checkImage(t, after, history, waited)
	if err := after.Close(); err != nil {
		t.Fatal(err)
	}
}

// heavy gives a batch a large record that counts the appends.
func heavy(b storage.Batch) storage.Batch {
	b.Changes = []storage.Change{{Kind: "weight", Key: "w", Value: bytes.Repeat([]byte{1, 2, 3}, 5000), If: storage.AnyVersion}}
	return b
}

// checkImage compares the store with a model that applied the appends up to the size of the first head, and continues
// with the next append.
func checkImage(t *testing.T, e *pebblestore.Engine, history [][]storage.Batch, waited int) {
	t.Helper()
	model := storagetest.NewModel()
	applied := 0
	for head(t, e, 1) != head(t, model, 1) || applied < waited {
		if applied == len(history) {
			t.Fatalf("no prefix of at least %d appends has head %+v", waited, head(t, e, 1))
		}
		model.Append(history[applied]).Wait()
		applied++
	}
	for _, tenant := range []id.Tenant{1, 2} {
		got, want := dump(t, e, tenant), dump(t, model, tenant)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("tenant %d after %d appends, %d of them waited for: contents differ: head %+v, want %+v",
				tenant, applied, waited, head(t, e, tenant), head(t, model, tenant))
		}
	}
	if applied > 0 {
		again := []storage.Batch{history[applied-1][0]}
		if err := e.Append(again).Wait()[0]; !errors.Is(err, storage.ErrConflict) {
			t.Errorf("the last append once more: got %v, want %v", err, storage.ErrConflict)
		}
	}
	if applied < len(history) {
		for _, err := range e.Append(history[applied]).Wait() {
			if err != nil {
				t.Errorf("the next append: %v", err)
			}
		}
	}
}

func head(t *testing.T, e storage.Engine, tenant id.Tenant) storage.Head {
	t.Helper()
	h, err := e.Head(t.Context(), tenant)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	return h
}

// dump reads head, events, the indices of their IDs, a counter and the record.
func dump(t *testing.T, e storage.Engine, tenant id.Tenant) (all []any) {
	t.Helper()
	all = append(all, head(t, e, tenant))
	for event, err := range e.Events(t.Context(), tenant, 0, storage.NoIndex, storage.FieldRecord|storage.FieldEnvelope) {
		if errors.Is(err, storage.ErrNotFound) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found, err := e.Lookup(t.Context(), tenant, []storage.DedupKey{{Text: string(event.ID)}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, event, found[0])
	}
	counts, err := e.Counters(t.Context(), tenant, []string{"events/2026-01"})
	if err != nil {
		t.Fatal(err)
	}
	records, err := e.Scan(t.Context(), tenant, "weight", "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		all = append(all, r)
	}
	return append(all, counts[0])
}
