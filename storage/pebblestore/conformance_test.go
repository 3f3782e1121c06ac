package pebblestore_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Open {
		fs := vfs.NewMem()
		return func(t *testing.T) storagetest.Engine { return open(t, pebblestore.Options{Dir: "data", FS: fs}) }
	})
}

func TestConformanceOnDisk(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Open {
		dir := t.TempDir()
		return func(t *testing.T) storagetest.Engine { return open(t, pebblestore.Options{Dir: dir}) }
	})
}

func open(t testing.TB, o pebblestore.Options) *pebblestore.Engine {
	t.Helper()
	if o.CacheBytes == 0 {
		o.CacheBytes = 8 << 20
	}
	e, err := pebblestore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
