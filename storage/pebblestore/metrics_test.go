package pebblestore_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

func TestMetrics(t *testing.T) {
	e := open(t, pebblestore.Options{Dir: "data", FS: vfs.NewMem()})
	before := e.Metrics()
	w := newWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.next(50)}).Wait(), nil)
	after := e.Metrics()
	if after.LogBytes < before.LogBytes+50*1024 || after.DiskBytes == 0 || after.MemTableBytes == 0 || after.MemoryBytes < after.MemTableBytes {
		t.Errorf("after 50 KiB: got %+v, before %+v", after, before)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := e.Metrics(), (pebblestore.Metrics{}); got != want {
		t.Errorf("closed: got %+v, want %+v", got, want)
	}
}
