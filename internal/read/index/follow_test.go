package index_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// stored returns all records of a tenant's index, without versions.
func (w *world) stored(tenant id.Tenant) map[string][]byte {
	w.t.Helper()
	found := make(map[string][]byte)
	for r, err := range storage.PartitionOf(w.t.Context(), w.engine, tenant) {
		if err != nil {
			w.t.Fatal(err)
		}
		if r.Kind.Derived() {
			found[string(r.Kind)+" "+r.Key] = r.Value
		}
	}
	return found
}

func (w *world) compareStored(what string, got, want map[string][]byte) {
	w.t.Helper()
	for key := range want {
		if !bytes.Equal(got[key], want[key]) {
			w.t.Errorf("%s: %s: got %d bytes, want %d", what, key, len(got[key]), len(want[key]))
		}
	}
	if len(got) != len(want) {
		w.t.Errorf("%s: got %d records, want %d", what, len(got), len(want))
	}
}

// drop removes the index of a tenant.
func (w *world) drop(tenant id.Tenant) {
	w.t.Helper()
	var changes []storage.Change
	for r, err := range storage.PartitionOf(w.t.Context(), w.engine, tenant) {
		if err != nil {
			w.t.Fatal(err)
		}
		if r.Kind.Derived() {
			changes = append(changes, storage.Change{Kind: r.Kind, Key: r.Key, If: storage.AnyVersion})
		}
	}
	if err := w.engine.Write(w.t.Context(), tenant, changes); err != nil {
		w.t.Fatal(err)
	}
}

// advanceAll makes all steps of a tenant's index, until one fails.
func advanceAll(ctx context.Context, x *index.Index, tenant id.Tenant) (steps int, err error) {
	for more := true; more && err == nil; steps++ {
		more, err = x.Advance(ctx, tenant)
	}
	return steps, err
}

// A follower that dies before or after each of its writes continues where it was: the index has the same bytes as
// without a death. The same holds for a rebuild, with its replacement and clean-up.
func TestFollowerDiesAtEachWrite(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), 2*index.ChunkEvents+100)
	w.follow()
	want := w.stored(red)
	for n := range 8 {
		for _, after := range []bool{false, true} {
			w.drop(red)
			what := fmt.Sprintf("write %d, after it: %v", n, after)
			mortal := &enginetest.Mortal{Engine: w.engine}
			mortal.DieAt(n, after)
			x := w.open(mortal)
			_, err := advanceAll(t.Context(), x, red)
			if err == nil {
				if err = x.Rebuild(t.Context(), red); err == nil {
					_, err = advanceAll(t.Context(), x, red)
				}
			}
			if mortal.Dead() != (err != nil) {
				t.Fatalf("%s: got %v, dead %v", what, err, mortal.Dead())
			}
			w.index = w.open(w.engine)
			if _, err := advanceAll(t.Context(), w.index, red); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			w.checkList(red, index.Query{Limit: 50, Filter: index.Filter{Agent: w.rows[red][5].Agent}}, 3)
			got := w.stored(red)
			if _, rebuilt := got["derived/index_columns 04000001/0000000000"]; !rebuilt {
				w.compareStored(what, got, want)
			} else if len(got) != len(want) {
				t.Errorf("%s: got %d records after a replacement, want %d", what, len(got), len(want))
			}
		}
	}
	w.compareStored("the other organization", w.stored(blue), func() map[string][]byte {
		w.drop(blue)
		w.follow()
		return w.stored(blue)
	}())
}

// Lists continue while the index is rebuilt, with the same content.
func TestRebuildWhileServing(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), 3*index.ChunkEvents+100)
	w.follow()
	if err := w.index.Rebuild(t.Context(), red); err != nil {
		t.Fatal(err)
	}
	if err := w.index.Rebuild(t.Context(), red); !fault.Is(err, fault.Conflict) || fault.Of(err).Message != "The index is already being rebuilt" {
		t.Errorf("a second time: got %v", err)
	}
	q := index.Query{Limit: 20, Filter: index.Filter{Tool: "acme.area1.**", Effective: id.Deny}}
	for more := true; more; {
		w.checkList(red, q, 2)
		var err error
		if more, err = w.index.Advance(t.Context(), red); err != nil {
			t.Fatal(err)
		}
	}
	w.checkList(red, q, 2)
	for key := range w.stored(red) {
		if key != "derived/index " && !bytes.Contains([]byte(key), []byte(" 04000001/")) {
			t.Errorf("%s is left", key)
		}
	}
	if err := w.index.Rebuild(t.Context(), red); err != nil {
		t.Errorf("afterwards: got %v", err)
	}
}

// A generation that is replaced and deleted while a list reads it does not mix into the list.
func TestListOfAGenerationThatGoes(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), 2*index.ChunkEvents)
	w.follow()
	if err := w.index.Rebuild(t.Context(), red); err != nil {
		t.Fatal(err)
	}
	replaced := false
	store := &hooked{Engine: w.engine, before: func() {
		if !replaced {
			replaced = true
			if _, err := advanceAll(t.Context(), w.index, red); err != nil {
				t.Error(err)
			}
		}
	}}
	reader := w.open(store)
	q := index.Query{Limit: 1000, Filter: index.Filter{Effective: id.Deny}}
	got, err := reader.List(t.Context(), red, q)
	if err != nil || !replaced || len(got.Rows) != 1000 {
		t.Errorf("got %d rows, %v, replaced %v", len(got.Rows), err, replaced)
	}
}

// hooked calls before at each scan of postings.
type hooked struct {
	storage.Engine
	before func()
}

func (h *hooked) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if kind == "derived/index_recent" || kind == "derived/index_postings" {
		h.before()
	}
	return h.Engine.Scan(ctx, t, kind, begin, end, limit)
}

// An index in an older program's format is rebuilt: its records are removed, and lists are correct in the meantime.
func TestOlderForm(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t), index.ChunkEvents+100)
		old := []storage.Change{
			{Kind: "derived/index", Value: []byte(`{"current":{"number":3,"position":8192}}`)},
			{Kind: "derived/index_postings", Key: "00000003/0a/00000000", Value: []byte{0, 0, 0, 1, 2, 5}},
			{Kind: "derived/index_columns", Key: "00000003/0000000000", Value: []byte{1}},
		}
		if err := w.engine.Write(t.Context(), red, old); err != nil {
			t.Fatal(err)
		}
		q := index.Query{Limit: 50, Filter: index.Filter{Agent: w.rows[red][5].Agent}}
		w.checkList(red, q, 3)
		w.follow()
		w.checkList(red, q, 3)
		w.checkList(blue, q, 3)
		for key := range w.stored(red) {
			if key != "derived/index " && !bytes.Contains([]byte(key), []byte(" 04000000/")) {
				t.Errorf("%s is left", key)
			}
		}
	})
}

// A damaged index is never treated as an empty one. The follower rebuilds it.
func TestDamagedIndex(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), 2*index.ChunkEvents)
	if _, err := w.index.Advance(t.Context(), red); err != nil { // all that is due
		t.Fatal(err)
	}
	var changes []storage.Change
	for key := range w.stored(red) {
		if name, ok := bytes.CutPrefix([]byte(key), []byte("derived/index_recent ")); ok {
			changes = append(changes, storage.Change{Kind: "derived/index_recent", Key: string(name), Value: []byte{1, 2, 3}, If: storage.AnyVersion})
		}
	}
	if err := w.engine.Write(t.Context(), red, changes); err != nil || len(changes) == 0 {
		t.Fatal(err)
	}
	_, err := w.index.List(t.Context(), red, index.Query{Limit: 1, Filter: index.Filter{Agent: "agt_none"}})
	if !errors.Is(err, storage.ErrCorrupt) || fault.Of(err).Message != "The index can't be read" {
		t.Errorf("got %v", err)
	}
	f := newFillerBehind(w, red)
	f.append(index.ChunkEvents)
	w.reopen()
	w.rows[red] = append(w.rows[red], f.rows...)
	w.texts[red] = append(w.texts[red], f.texts...)
	w.follow()
	w.checkList(red, index.Query{Limit: 50, Filter: index.Filter{Effective: id.Deny}}, 3)
	w.checkList(blue, index.Query{Limit: 50, Filter: index.Filter{Effective: id.Deny}}, 3)
}
