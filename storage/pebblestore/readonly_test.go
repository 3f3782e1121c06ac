package pebblestore_test

import (
	"crypto/sha256"
	"errors"
	"maps"
	"os"
	"path"
	"reflect"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// killed returns a file system on which a process with two ledgers was killed: some of their events are in tables, and
// some only in the log. want is their content.
func killed(t *testing.T) (image *vfs.MemFS, want map[id.Tenant][]any) {
	t.Helper()
	fs := enginetest.NewCrashDisk()
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	red, blue := newWriter(1), newWriter(2)
	for round := range 6 {
		wantAll(t, e.Append([]storage.Batch{heavy(red.next(3)), heavy(blue.next(2))}).Wait(), nil)
		if round == 2 {
			if err := e.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	image = fs.CrashClone(vfs.CrashCloneCfg{})
	want = map[id.Tenant][]any{1: dump(t, e, 1), 2: dump(t, e, 2)}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return image, want
}

// files returns the digest of each file in a directory.
func files(t *testing.T, fs vfs.FS, dir string) map[string][32]byte {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][32]byte)
	for _, name := range names {
		all[name] = sha256.Sum256(readFile(t, fs, path.Join(dir, name)))
	}
	return all
}

// A read-only store shows everything that is durable and is not changed.
func TestReadOnly(t *testing.T) {
	image, want := killed(t)
	before := files(t, image, "data")
	e := open(t, pebblestore.Options{Dir: "data", FS: image, ReadOnly: true})
	for tenant, want := range want {
		if got := dump(t, e, tenant); !reflect.DeepEqual(got, want) {
			t.Errorf("tenant %d: got another content than was written", tenant)
		}
	}
	batch := newWriter(3).next(1)
	wantAll(t, e.Append([]storage.Batch{batch}).Wait(), storage.ErrReadOnly)
	wantAll(t, []error{
		e.Write(t.Context(), 1, []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v")}}),
		e.Drop(t.Context(), 1, storage.Record{Kind: "weight", Key: "w", Version: 6}),
	}, storage.ErrReadOnly)
	wantAll(t, []error{e.Barrier(t.Context())}, nil)
	if m := e.Metrics(); m.DiskBytes == 0 {
		t.Errorf("metrics: got %+v", m)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if after := files(t, image, "data"); !maps.Equal(before, after) {
		t.Errorf("files before and after: got %d and %d of them, or others", len(before), len(after))
	}
	for tenant, want := range want { // the store continues
		e := open(t, pebblestore.Options{Dir: "data", FS: image})
		if got := dump(t, e, tenant); !reflect.DeepEqual(got, want) {
			t.Errorf("tenant %d afterwards: got another content than was written", tenant)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A store can be read on a file system that allows no writes, and without a lock file.
func TestReadOnlyFileSystem(t *testing.T) {
	for name, err := range map[string]error{
		"read-only file system": &os.PathError{Op: "open", Path: "LOCK", Err: syscall.EROFS},
		"no permission":         &os.PathError{Op: "open", Path: "LOCK", Err: syscall.EACCES},
	} {
		image, want := killed(t)
		fs := errorfs.Wrap(image, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsRead || op.Kind == errorfs.OpFileClose || op.Kind == errorfs.OpFileSync && errors.Is(err, syscall.EACCES) {
				return nil
			}
			return err
		}))
		e := open(t, pebblestore.Options{Dir: "data", FS: fs, ReadOnly: true})
		for tenant, want := range want {
			if got := dump(t, e, tenant); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: tenant %d: got another content than was written", name, tenant)
			}
		}
		if err := e.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
	image, _ := killed(t)
	if err := image.Remove("data/LOCK"); err != nil {
		t.Fatal(err)
	}
	e := open(t, pebblestore.Options{Dir: "data", FS: image, ReadOnly: true})
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := image.Stat("data/LOCK"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file was made: %v", err)
	}
}

// A store that a process has open is not opened, and no store is created.
func TestReadOnlyRefusals(t *testing.T) {
	fs := vfs.NewMem()
	e := open(t, pebblestore.Options{Dir: "data", FS: fs})
	if _, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: fs, ReadOnly: true}); err == nil {
		t.Error("a store that is in use was opened")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirAll("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"empty", "none"} {
		if _, err := pebblestore.Open(pebblestore.Options{Dir: dir, FS: fs, ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v, want %v", dir, err, os.ErrNotExist)
		}
	}
	if names, err := fs.List("empty"); err != nil || len(names) != 0 {
		t.Errorf("made: %v, %v", names, err)
	}
}

// A read-only store uses no memory for memtables that it does not have.
func TestReadOnlyCache(t *testing.T) {
	for name, c := range map[string]struct {
		options pebblestore.Options
		want    int64
	}{
		"read-only":          {pebblestore.Options{ReadOnly: true, CacheBytes: 64 << 20}, 64 << 20},
		"read-only, default": {pebblestore.Options{ReadOnly: true}, 256 << 20},
		"with writes":        {pebblestore.Options{CacheBytes: 64 << 20}, (64 + 128) << 20},
	} {
		if got := pebblestore.CacheBytes(c.options); got != c.want {
			t.Errorf("%s: got %d MiB, want %d", name, got>>20, c.want>>20)
		}
	}
}
