package pebblestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// sizesOf returns the sizes of the tenants' ledgers.
func sizesOf(t *testing.T, e *pebblestore.Engine, tenants ...id.Tenant) (sizes []id.Index) {
	t.Helper()
	for _, tenant := range tenants {
		head, err := e.Head(t.Context(), tenant)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
		sizes = append(sizes, head.Size)
	}
	return sizes
}

// Snapshots are taken while two organizations append: each contains everything that was acknowledged before it, opens
// like an independent store, also for writing, and leaves the store unchanged.
func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	e := open(t, pebblestore.Options{Dir: data + "/"})
	writers := map[id.Tenant]*storagetest.Writer{1: storagetest.NewWriter(1), 2: storagetest.NewWriter(2)}
	grow := func(batches int) {
		t.Helper()
		for range batches {
			wantAll(t, e.Append([]storage.Batch{writers[1].Next(30), writers[2].Next(20)}).Wait(), nil)
		}
	}
	for round := range 3 {
		grow(5)
		if round == 1 { // tables, and not logs alone
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, pebblestore.Options{Dir: data})
		}
		before := sizesOf(t, e, 1, 2)
		done := make(chan error)
		to := filepath.Join(dir, "snapshot", string(rune('a'+round)))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		go func() { done <- e.Snapshot(t.Context(), to) }()
		grow(5)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s := open(t, pebblestore.Options{Dir: to, ReadOnly: true})
		after, now := sizesOf(t, s, 1, 2), sizesOf(t, e, 1, 2)
		for i := range before {
			if after[i] < before[i] || after[i] > now[i] {
				t.Errorf("round %d, organization %d: the snapshot has %d events, want %d to %d",
					round, i+1, after[i], before[i], now[i])
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		w := open(t, pebblestore.Options{Dir: to})
		if got := sizesOf(t, w, 1, 2); got[0] != after[0] || got[1] != after[1] {
			t.Errorf("round %d: opened to be written to it has %v, want %v", round, got, after)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := sizesOf(t, e, 1, 2)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, pebblestore.Options{Dir: data})
	if got := sizesOf(t, e, 1, 2); got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the store has %v after its snapshots, want %v", got, want)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotRefuses(t *testing.T) {
	dir := t.TempDir()
	e := open(t, pebblestore.Options{Dir: filepath.Join(dir, "data")})
	defer e.Close()
	if err := e.Snapshot(t.Context(), dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is there: got %v", err)
	}
	if err := e.Snapshot(t.Context(), filepath.Join(dir, "none", "snapshot")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a folder that is not there: got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a refused snapshot made a folder")
	}
}

// full is a file system on which no files can be created below a folder.
type full struct {
	vfs.FS
	dir string
}

func (f full) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.PathDir(name) == f.dir {
		return nil, errors.New("no space left")
	}
	return f.FS.Create(name, c)
}

// A snapshot that fails leaves nothing, and the store continues.
func TestSnapshotOnAFullVolume(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("copies", 0o700); err != nil {
		t.Fatal(err)
	}
	e := open(t, pebblestore.Options{Dir: "data", FS: full{mem, "copies/one"},
		OnBroken: func(err error) { t.Errorf("the store broke: %v", err) }})
	w := storagetest.NewWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.Next(30)}).Wait(), nil)
	if err := e.Snapshot(t.Context(), "copies/one"); err == nil {
		t.Fatal("the snapshot is made without room")
	}
	if names, err := mem.List("copies"); err != nil || len(names) != 0 {
		t.Errorf("it left %v, %v", names, err)
	}
	wantAll(t, e.Append([]storage.Batch{w.Next(30)}).Wait(), nil)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
