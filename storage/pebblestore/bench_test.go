package pebblestore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// BenchmarkAppend writes to a real disk. bytes/event is the size of the tables once everything is flushed and
// compacted.
func BenchmarkAppend(b *testing.B) {
	storagetest.BenchmarkAppend(b, func(b *testing.B, run func(storage.Engine)) {
		dir := b.TempDir()
		e := open(b, pebblestore.Options{Dir: dir, CacheBytes: 256 << 20})
		run(e)
		if err := e.Compact(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(tableBytes(b, dir))/float64(b.N), "bytes/event")
	})
}

func wait(b *testing.B, p storage.Pending) {
	if p == nil {
		return
	}
	for _, err := range p.Wait() {
		if err != nil {
			b.Fatal(err)
		}
	}
}

func tableBytes(b *testing.B, dir string) (total int64) {
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			b.Fatal(err)
		}
		total += info.Size()
	}
	return total
}

// writer is a storagetest.Writer with the head after its last batch.
type writer struct {
	*storagetest.Writer
	head storage.Head
}

func newWriter(t id.Tenant) *writer { return &writer{Writer: storagetest.NewWriter(t)} }

func (w *writer) next(n int) storage.Batch {
	b := w.Next(n)
	w.head = b.Head
	return b
}

// BenchmarkLookupUnknown looks up IDs that do not exist, as each ingest does.
func BenchmarkLookupUnknown(b *testing.B) {
	e := open(b, pebblestore.Options{Dir: b.TempDir(), CacheBytes: 256 << 20})
	w := newWriter(1)
	for range 200 {
		wait(b, e.Append([]storage.Batch{w.next(1000)}))
	}
	if err := e.Compact(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		found, err := e.Lookup(b.Context(), 1, []storage.DedupKey{{Text: fmt.Sprint(time.Duration(i))}})
		if err != nil || found[0] != storage.NoIndex {
			b.Fatal(found, err)
		}
	}
	b.StopTimer()
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
}
