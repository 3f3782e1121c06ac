package pebblestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// fileOf returns the name of the latest file with the given prefix and suffix.
func fileOf(t *testing.T, fs vfs.FS, prefix, suffix string) string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) || !strings.HasSuffix(n, suffix) })
	if len(names) == 0 {
		t.Fatalf("there is no file %s…%s", prefix, suffix)
	}
	return path.Join("data", slices.Max(names))
}

// A store from which something was removed is rejected, for reading and for writing, and is not changed: if the file is
// restored, everything is there again.
func TestDamagedStoreIsRefused(t *testing.T) {
	cut := func(of func(n int) int) func(t *testing.T, fs vfs.FS) {
		return func(t *testing.T, fs vfs.FS) {
			name := fileOf(t, fs, "MANIFEST-", "")
			whole := readFile(t, fs, name)
			writeFile(t, fs, name, whole[:of(len(whole))])
		}
	}
	remove := func(files ...[2]string) func(t *testing.T, fs vfs.FS) {
		return func(t *testing.T, fs vfs.FS) {
			for _, f := range files {
				if err := fs.Remove(fileOf(t, fs, f[0], f[1])); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, fs vfs.FS)
		says   string
	}{
		"marker":                    {remove([2]string{"marker.manifest."}), "marker.manifest.*"},
		"marker and store file":     {remove([2]string{"marker.manifest."}, [2]string{"agentledger.store"}), "marker.manifest.*"},
		"both markers":              {remove([2]string{"marker.manifest."}, [2]string{"marker.format-version."}), "marker.manifest.*"},
		"format marker":             {remove([2]string{"marker.format-version."}), "marker.format-version.*"},
		"manifest":                  {remove([2]string{"MANIFEST-"}), "is missing"},
		"manifest cut in half":      {cut(func(n int) int { return n / 2 }), "MANIFEST-"},
		"manifest without its end":  {cut(func(n int) int { return n - 1 }), "MANIFEST-"},
		"manifest without content":  {cut(func(int) int { return 0 }), "is cut off"},
		"manifest, marker of older": {olderMarker, "the newer marker.manifest.* is missing"},
		"store file":                {func(t *testing.T, fs vfs.FS) { writeFile(t, fs, "data/agentledger.store", make([]byte, 1024)) }, "agentledger.store is damaged"},
		"log":                       {remove([2]string{"", ".log"}), ""}, // of what is beyond, nobody knows
	} {
		t.Run(name, func(t *testing.T) {
			image, want := killed(t)
			whole := image.CrashClone(vfs.CrashCloneCfg{})
			c.damage(t, image)
			before := files(t, image, "data")
			for _, readOnly := range []bool{true, false} {
				if c.says == "" {
					break
				}
				e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: image, ReadOnly: readOnly})
				if err == nil {
					e.Close()
				}
				if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("read-only %v: got %v, want %v with %q", readOnly, err, storage.ErrCorrupt, c.says)
				}
				if after := files(t, image, "data"); !maps.Equal(before, after) {
					t.Fatalf("read-only %v: the files are others than before", readOnly)
				}
			}
			for file := range files(t, whole, "data") {
				writeFile(t, image, path.Join("data", file), readFile(t, whole, path.Join("data", file)))
			}
			e := open(t, pebblestore.Options{Dir: "data", FS: whole})
			for tenant, want := range want {
				if got := dump(t, e, tenant); !reflect.DeepEqual(got, want) {
					t.Errorf("tenant %d: got another content than was written", tenant)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// olderMarker names another, older manifest, as in a mixed copy.
func olderMarker(t *testing.T, fs vfs.FS) {
	manifest := fileOf(t, fs, "MANIFEST-", "")
	marker := fileOf(t, fs, "marker.manifest.", "")
	writeFile(t, fs, "data/MANIFEST-000001", readFile(t, fs, manifest))
	if err := fs.Rename(marker, "data/marker.manifest.000001.MANIFEST-000001"); err != nil {
		t.Fatal(err)
	}
}

// A manifest may be cut off at the end of a record, so that the rest is intact. The store file records where it ended;
// without that file, the logs do.
func TestManifestCutAtARecord(t *testing.T) {
	image, _ := killed(t)
	name := fileOf(t, image, "MANIFEST-", "")
	whole := readFile(t, image, name)
	for end := lastManifestChunk(t, whole); end > 0; end = lastManifestChunk(t, whole[:end]) {
		writeFile(t, image, name, whole[:end])
		if _, err := pebblestore.Inspect(image, "data"); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("cut at %d of %d: got %v", end, len(whole), err)
		}
	}
	writeFile(t, image, name, whole)
	if _, err := pebblestore.Inspect(image, "data"); err != nil {
		t.Errorf("whole: %v", err)
	}
}

// A store that predates the store file is opened, and has one from then on.
func TestStoreFileIsMade(t *testing.T) {
	image, want := killed(t)
	if err := image.Remove("data/agentledger.store"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e := open(t, pebblestore.Options{Dir: "data", FS: image})
		for tenant, want := range want {
			if got := dump(t, e, tenant); !reflect.DeepEqual(got, want) {
				t.Errorf("tenant %d: got another content than was written", tenant)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if got := string(readFile(t, image, "data/agentledger.store")); len(got) != 1024 || !strings.Contains(got, "agentledger-store/1 turn ") {
			t.Errorf("store file: got %q", got)
		}
	}
	cut := readFile(t, image, fileOf(t, image, "MANIFEST-", ""))
	writeFile(t, image, fileOf(t, image, "MANIFEST-", ""), cut[:len(cut)-1])
	if _, err := pebblestore.Inspect(image, "data"); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("a manifest that is cut then: got %v", err)
	}
}

// A crash damages at most one slot of the store file; the other one is enough.
func TestTornStoreFile(t *testing.T) {
	image, _ := killed(t)
	whole := readFile(t, image, "data/agentledger.store")
	for slot := range 2 {
		for _, end := range []int{0, 20, 511} {
			torn := slices.Clone(whole)
			clear(torn[slot*512+end : slot*512+512])
			torn[slot*512+3] ^= 0x20
			writeFile(t, image, "data/agentledger.store", torn)
			if _, err := pebblestore.Inspect(image, "data"); err != nil {
				t.Errorf("slot %d, from byte %d on: %v", slot, end, err)
			}
		}
	}
}

// A store file that no program has written is rejected, even if one of its slots is intact. The error names the file
// and the remedy.
func TestMalformedStoreFile(t *testing.T) {
	image, _ := killed(t)
	const name = "data/agentledger.store"
	whole := readFile(t, image, name)
	first, second := whole[:512], whole[512:]
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	zeros := make([]byte, 512)
	edited := func(old, replacement string) []byte { return bytes.Replace(first, []byte(old), []byte(replacement), 1) }
	for what, content := range map[string][]byte{
		"empty":                     {},
		"one byte":                  whole[:1],
		"cut in the first slot":     whole[:300],
		"cut to the first slot":     first,
		"cut in the second slot":    whole[:1000],
		"without its last byte":     whole[:1023],
		"with one more byte":        join(whole, []byte("\n")),
		"with one more slot":        join(whole, first),
		"zeros":                     join(zeros, zeros),
		"slots exchanged":           join(second, first),
		"bytes after the line":      join(edited("\n  ", "\n x"), zeros),
		"no line end after a slot":  join(first[:511], []byte(" "), zeros),
		"carriage return line ends": bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")),
	} {
		writeFile(t, image, name, content)
		before := files(t, image, "data")
		for _, readOnly := range []bool{true, false} {
			e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: image, ReadOnly: readOnly})
			if err == nil {
				e.Close()
			}
			if !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), name+" is damaged") ||
				!strings.Contains(err.Error(), "restore the file") {
				t.Errorf("%s, read-only %v: got %v", what, readOnly, err)
			}
		}
		if after := files(t, image, "data"); !maps.Equal(before, after) {
			t.Errorf("%s: the refusal changed files", what)
		}
	}
	if err := image.Remove(name); err != nil { // the way out
		t.Fatal(err)
	}
	if err := open(t, pebblestore.Options{Dir: "data", FS: image}).Close(); err != nil {
		t.Fatal(err)
	}
}

// A store of another format is rejected before anything is read or written, by its file or, if the file is lost, by its
// key.
func TestOtherFormat(t *testing.T) {
	fs := enginetest.NewCrashDisk()
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	red, blue := newWriter(1), newWriter(2)
	wantAll(t, e.Append([]storage.Batch{red.next(2), blue.next(2)}).Wait(), nil)
	if err := e.SetFormat(7); err != nil {
		t.Fatal(err)
	}
	image := fs.CrashClone(vfs.CrashCloneCfg{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		if lost {
			if err := image.Remove("data/agentledger.store"); err != nil {
				t.Fatal(err)
			}
		}
		before := files(t, image, "data")
		for _, readOnly := range []bool{true, false} {
			_, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: image, ReadOnly: readOnly})
			if err == nil || !strings.Contains(err.Error(), "format 7") || !strings.Contains(err.Error(), "created by a newer agentledger") {
				t.Errorf("file lost %v, read-only %v: got %v", lost, readOnly, err)
			}
		}
		if after := files(t, image, "data"); !maps.Equal(before, after) {
			t.Errorf("file lost %v: the files are others than before", lost)
		}
	}
}

// TestCrashAtEveryStep loses power at each step of a store's life: created, filled, flushed, compacted, closed, opened
// again. No step leaves a store that is rejected, and every acknowledged append is there.
func TestCrashAtEveryStep(t *testing.T) {
	mem := enginetest.NewCrashDisk()
	type image struct {
		fs     *vfs.MemFS
		op     errorfs.Op
		waited int
	}
	var mu sync.Mutex // Pebble works in several goroutines
	var images []image
	waited, steps := 0, uint64(0)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileClose, errorfs.OpFileFlush, errorfs.OpFilePreallocate, errorfs.OpFileSyncTo, errorfs.OpLock:
			return nil
		}
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		steps++
		random := rand.New(rand.NewPCG(steps, 6))
		images = append(images, image{mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(steps%3) * 50, RNG: random}), op, waited})
		return nil
	}))
	red, blue := newWriter(1), newWriter(2)
	var history [][]storage.Batch
	for round := range 3 {
		e := open(t, pebblestore.Options{Dir: "data", FS: fs, CacheBytes: 1 << 20})
		for i := range 4 {
			batches := []storage.Batch{heavy(red.next(1)), heavy(blue.next(1))}
			mu.Lock()
			history = append(history, batches)
			mu.Unlock()
			wantAll(t, e.Append(batches).Wait(), nil)
			mu.Lock()
			waited++
			mu.Unlock()
			if i == round {
				if err := e.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, image := range images {
		e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: image.fs, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatalf("image %d of %d, at %v %s: %v", i, len(images), image.op.Kind, image.op.Path, err)
		}
		if got := int(head(t, e, 1).Size); got < image.waited {
			t.Fatalf("image %d of %d, at %v %s: got %d appends, want %d", i, len(images), image.op.Kind, image.op.Path, got, image.waited)
		}
		if i%10 == 0 {
			checkImage(t, e, history, image.waited)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(fmt.Sprint(len(images), " images"))
}
