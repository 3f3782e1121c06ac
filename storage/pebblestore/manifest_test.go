package pebblestore_test

import (
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// manifestOf creates a store of two ledgers with some tables, and returns its file system and the name and content of
// its manifest.
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

// checkManifest checks a manifest of which the given number of bytes is known to be synced.
func checkManifest(t *testing.T, fs vfs.FS, name string, synced int64) error {
	t.Helper()
	number, err := strconv.ParseUint(strings.TrimPrefix(path.Base(name), walcheck.ManifestPrefix), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	_, err = walcheck.CheckManifest(fs, path.Dir(name), number, synced)
	return err
}

// lastManifestChunk returns the start of the last chunk of an intact manifest of one block.
func lastManifestChunk(t *testing.T, b []byte) (at int) {
	t.Helper()
	const header = 7
	for {
		next := at + header + int(binary.LittleEndian.Uint16(b[at+4:]))
		if next > len(b) || walcheck.Sum(b[at+6:next]) != binary.LittleEndian.Uint32(b[at:]) {
			t.Fatalf("no whole chunk at byte %d of %d", at, len(b))
		}
		if next == len(b) {
			return at
		}
		at = next
	}
}

// Any flipped bit of a manifest is detected before Pebble deletes the tables that it would consider unused.
func TestFlippedBitsOfTheManifest(t *testing.T) {
	fs, name, whole := manifestOf(t)
	if err := checkManifest(t, fs, name, int64(len(whole))); err != nil {
		t.Fatalf("a whole manifest of %d bytes: %v", len(whole), err)
	}
	for i := range whole {
		for bit := range 8 {
			bent := slices.Clone(whole)
			bent[i] ^= 1 << bit
			writeFile(t, fs, name, bent)
			if err := checkManifest(t, fs, name, 0); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("byte %d of %d, bit %d: got %v, want ErrCorrupt", i, len(whole), bit, err)
			}
		}
	}
}

// A manifest whose last record was left unfinished by a crash is not damaged.
func TestUnfinishedManifest(t *testing.T) {
	fs, name, whole := manifestOf(t)
	last := lastManifestChunk(t, whole)
	for end := last; end < len(whole); end++ {
		writeFile(t, fs, name, whole[:end])
		if err := checkManifest(t, fs, name, 0); err != nil {
			t.Errorf("cut off at %d of %d: %v", end, len(whole), err)
		}
		zeros := append(slices.Clone(whole[:end]), make([]byte, len(whole)-end+4096)...)
		writeFile(t, fs, name, zeros)
		if err := checkManifest(t, fs, name, 0); err != nil {
			t.Errorf("zeros from %d of %d on: %v", end, len(whole), err)
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
