package pebblestore_test

import (
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// manifestOf makes a store of two ledgers with some tables and returns its
// file system and the name and content of its manifest.
func manifestOf(t *testing.T) (fs *vfs.MemFS, name string, content []byte) {
	t.Helper()
	fs = vfs.NewMem()
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	red, blue := newWriter(1), newWriter(2)
	for range 4 {
		wantAll(t, e.Append([]storage.Batch{red.next(3), blue.next(3)}).Wait(), nil)
		if err := e.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	for _, f := range files {
		if strings.HasPrefix(f, "MANIFEST-") {
			name = path.Join("data", f)
		}
	}
	return fs, name, readFile(t, fs, name)
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	// A clone, because a memory file system overwrites what it was given in builds with the race detector.
	if _, err := f.Write(slices.Clone(b)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Any flipped bit of a manifest is found before Pebble deletes what it then
// takes for unused.
func TestFlippedBitsOfTheManifest(t *testing.T) {
	_, _, whole := manifestOf(t)
	if at, damaged := pebblestore.DamagedChunk(whole); damaged || at != len(whole) {
		t.Fatalf("a whole manifest of %d bytes is damaged at %d", len(whole), at)
	}
	for i := range whole {
		for bit := range 8 {
			bent := slices.Clone(whole)
			bent[i] ^= 1 << bit
			if _, damaged := pebblestore.DamagedChunk(bent); !damaged {
				t.Errorf("byte %d of %d, bit %d: not found", i, len(whole), bit)
			}
		}
	}
}

// A manifest whose last record a crash left unfinished is an honest one.
func TestUnfinishedManifest(t *testing.T) {
	_, _, whole := manifestOf(t)
	last := pebblestore.LastChunk(whole)
	for end := last; end < len(whole); end++ {
		if at, damaged := pebblestore.DamagedChunk(whole[:end]); damaged {
			t.Errorf("cut off at %d of %d: damaged at %d", end, len(whole), at)
		}
		zeros := append(slices.Clone(whole[:end]), make([]byte, len(whole)-end+4096)...)
		if at, damaged := pebblestore.DamagedChunk(zeros); damaged {
			t.Errorf("zeros from %d of %d on: damaged at %d", end, len(whole), at)
		}
	}
}

func TestDamagedManifestIsRefused(t *testing.T) {
	fs, name, whole := manifestOf(t)
	bent := slices.Clone(whole)
	bent[len(bent)/2] ^= 1
	writeFile(t, fs, name, bent)
	before, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: fs}); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("open: got %v, want ErrCorrupt", err)
	}
	after, err := fs.List("data")
	if err != nil || len(after) != len(before) {
		t.Errorf("files after the refusal: got %v, %v; want %v", after, err, before)
	}
	writeFile(t, fs, name, whole)
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	defer e.Close()
	for _, tenant := range []storage.Batch{{Tenant: 1}, {Tenant: 2}} {
		if h, err := e.Head(t.Context(), tenant.Tenant); err != nil || h.Size != 12 {
			t.Errorf("tenant %d after the repair: got %+v, %v", tenant.Tenant, h, err)
		}
	}
}
