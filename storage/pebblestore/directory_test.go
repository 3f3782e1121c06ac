package pebblestore_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// TestMarkers loses power after each marker, on a file system that keeps any of the unsynced names.
func TestMarkers(t *testing.T) {
	mem := enginetest.NewCrashDisk()
	var mu sync.Mutex // Pebble writes in several goroutines
	var images []*vfs.MemFS
	marked := false
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if marked {
			for seed := range uint64(8) {
				images = append(images, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 5))}))
			}
		}
		marked = op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "marker.")
		return nil
	}))
	w := newWriter(1)
	for range 3 {
		e := open(t, pebblestore.Options{Dir: "data", FS: fs})
		wantAll(t, e.Append([]storage.Batch{w.next(1)}).Wait(), nil)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(images) == 0 {
		t.Fatal("no marker was made")
	}
	for _, image := range images {
		e := open(t, pebblestore.Options{Dir: "data", FS: image})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFailedDirectorySync: nothing is retried after a directory could not be synced.
func TestFailedDirectorySync(t *testing.T) {
	var fail atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fail.Load() && op.Kind == errorfs.OpFileSync && op.Path == "data" {
			return errDisk
		}
		return nil
	}))
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	wantAll(t, e.Append([]storage.Batch{newWriter(1).next(1)}).Wait(), nil)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	fail.Store(true)
	broken := make(chan error)
	end := func(err error) {
		broken <- err
		select {} // as if the process ended here
	}
	go pebblestore.Open(pebblestore.Options{Dir: "data", FS: fs, CacheBytes: 8 << 20, OnBroken: end})
	if err := <-broken; !errors.Is(err, storage.ErrBroken) || !errors.Is(err, errDisk) {
		t.Errorf("told %v, want %v for %v", err, storage.ErrBroken, errDisk)
	}
}
