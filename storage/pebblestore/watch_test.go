package pebblestore_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// A watch counts every write of its kinds, of both organizations, and no others.
func TestWatchKinds(t *testing.T) {
	e := open(t, pebblestore.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20})
	defer e.Close()
	const red, blue = 1, 2
	put := func(kind storage.Kind) []storage.Change {
		return []storage.Change{{Kind: kind, Key: "k", Value: []byte("v"), If: storage.AnyVersion}}
	}
	write := func(tenant id.Tenant, changes []storage.Change) func() error {
		return func() error { return e.Write(t.Context(), tenant, changes) }
	}
	keys, both := e.WatchKinds("key"), e.WatchKinds("key", "org")
	stale := put("key")
	stale[0].If = 99
	for _, step := range []struct {
		name       string
		do         func() error
		keys, both uint64 // expected counts
		refused    bool
	}{
		{"red's key", write(red, put("key")), 1, 1, false},
		{"blue's key", write(blue, put("key")), 1, 1, false},
		{"red's organization", write(red, put("org")), 0, 1, false},
		{"a longer kind", write(red, put("keyring")), 0, 0, false},
		{"two at once", write(blue, append(put("key"), put("org")...)), 1, 2, false},
		{"refused", write(red, stale), 0, 0, true},
		{"removed", write(red, []storage.Change{{Kind: "key", Key: "k", If: storage.AnyVersion}}), 1, 1, false},
		{"with an append", func() error {
			b := storage.Batch{Tenant: red, Head: storage.Head{Root: id.Hash{1}, ConfigVersion: 1}, Changes: put("key")}
			return e.Append([]storage.Batch{b}).Wait()[0]
		}, 1, 1, false},
		{"dropped", func() error { return e.Drop(t.Context(), red, storage.Record{Kind: "key", Key: "k", Version: 1}) }, 1, 2, false},
	} {
		keysBefore, bothBefore := keys(), both()
		if err := step.do(); (err != nil) != step.refused {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := keys() - keysBefore; got != step.keys {
			t.Errorf("%s: watch of keys: got %d, want %d", step.name, got, step.keys)
		}
		if got := both() - bothBefore; got != step.both {
			t.Errorf("%s: watch of both: got %d, want %d", step.name, got, step.both)
		}
	}
}
