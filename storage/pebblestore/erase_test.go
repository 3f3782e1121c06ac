package pebblestore

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// eraseFirst is an append that erases the first event of the store of damaged.
func eraseFirst() storage.Batch {
	return storage.Batch{
		Tenant: 1, Expect: storage.Head{Size: 3, Root: id.Hash{1}}, Head: storage.Head{Size: 4, Root: id.Hash{2}},
		Events: []storage.Event{{Index: 3, ID: "d", Envelope: []byte("{}"), Erases: []id.Range{{End: 1}}}},
	}
}

// An event that cannot be read is not erased, and nothing of the append is applied.
func TestEraseDamaged(t *testing.T) {
	record := appendIndexKey(nil, 1, familyRecord, 0)
	for fault, damage := range map[string]func(*pebble.Batch){
		"record missing":   func(b *pebble.Batch) { _ = b.Delete(record, nil) },
		"record damaged":   func(b *pebble.Batch) { _ = b.Set(record, []byte{9}, nil) },
		"erased by none":   func(b *pebble.Batch) { _ = b.Set(record, []byte{form3, 0, 1, 1, 0, 0, 0, 0, 0, 0}, nil) },
		"a number cut off": func(b *pebble.Batch) { _ = b.Set(record, []byte{form3, 0, 1, 1, 0xff}, nil) },
	} {
		e := damaged(t, damage)
		if err := e.Append([]storage.Batch{eraseFirst()}).Wait()[0]; !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%s: got %v, want %v", fault, err, storage.ErrCorrupt)
		}
		if h, err := e.Head(t.Context(), 1); err != nil || h.Size != 3 {
			t.Errorf("%s: got head %+v, %v", fault, h, err)
		}
	}
}

// The first erasure gives the store a format that programs without erasures reject.
func TestErasureRaisesFormat(t *testing.T) {
	fs := vfs.NewMem()
	want := func(format uint64) {
		t.Helper()
		s, found, err := readStoreFile(fs, "data")
		if err != nil || !found || s.format != format {
			t.Errorf("store file: got %+v, %v, %v, want format %d", s, found, err, format)
		}
	}
	e, err := Open(Options{Dir: "data", FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	first := storage.Batch{Tenant: 1, Head: storage.Head{Size: 1, Root: id.Hash{1}},
		Events: []storage.Event{{ID: "a", Envelope: []byte("{}")}}}
	if err := e.Append([]storage.Batch{first}).Wait()[0]; err != nil {
		t.Fatal(err)
	}
	want(formatNumber)
	next := storage.Batch{Tenant: 1, Expect: first.Head, Head: storage.Head{Size: 2, Root: id.Hash{2}},
		Events: []storage.Event{{Index: 1, ID: "b", Erases: []id.Range{{End: 1}}}}}
	if err := e.Append([]storage.Batch{next}).Wait()[0]; err != nil {
		t.Fatal(err)
	}
	want(formatErased)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = Open(Options{Dir: "data", FS: fs}); err != nil {
		t.Fatal(err)
	}
	err = e.readValue(formatKey(), func(v []byte) error {
		if n, err := parseNumber(v); err != nil || n != formatErased {
			t.Errorf("key: got %d, %v, want %d", n, err, formatErased)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	want(formatErased)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
