package archive_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// fillLifelike writes n events with envelopes of 1 KiB, several per append.
func fillLifelike(b *testing.B, e storage.Engine, n, each int) {
	b.Helper()
	w := storagetest.NewWriter(red)
	for range n / each {
		batch := w.Next(each)
		for i := range batch.Events {
			batch.Events[i].Entry.Record = sha256.Sum256(batch.Events[i].Record)
		}
		if err := e.Append([]storage.Batch{batch}).Wait()[0]; err != nil {
			b.Fatal(err)
		}
	}
}

func folder(b *testing.B) objects.Store {
	b.Helper()
	store, err := objects.NewFolder(b.TempDir() + "/objects")
	if err != nil {
		b.Fatal(err)
	}
	return store
}

// BenchmarkSpace reports the bytes per event in the engine, before and after its texts are archived, and the bytes of
// its part of an object. An operation is a whole store.
func BenchmarkSpace(b *testing.B) {
	const events = 1 << 16
	for _, each := range []int{1, 64} {
		n := events
		if each == 1 {
			n = events / 8
		}
		b.Run(fmt.Sprintf("pebble/batch=%d", each), func(b *testing.B) {
			dir := b.TempDir()
			e, err := pebblestore.Open(pebblestore.Options{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			size := func() (bytes float64) {
				if err := e.Compact(b.Context()); err != nil {
					b.Fatal(err)
				}
				time.Sleep(time.Second) // old tables are deleted in the background
				tables, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
				for _, name := range tables {
					if file, err := os.Stat(name); err == nil {
						bytes += float64(file.Size())
					}
				}
				return bytes
			}
			benchmarkSpace(b, e, n, each, size)
		})
		b.Run(fmt.Sprintf("postgres/batch=%d", each), func(b *testing.B) {
			name := fmt.Sprint("b", schemas.Add(1))
			if err := server.Exec("CREATE SCHEMA " + name); err != nil {
				b.Fatal(err)
			}
			e, err := pgstore.Open(b.Context(), pgstore.Options{URL: server.URL("search_path=" + name), Writers: 1, Readers: 2})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			size := func() float64 {
				tables := fmt.Sprintf("VACUUM (FULL) %[1]s.event, %[1]s.segment, %[1]s.record, %[1]s.tile", name)
				if err := server.Exec(tables); err != nil {
					b.Fatal(err)
				}
				return tableBytes(b, name)
			}
			benchmarkSpace(b, e, n, each, size)
		})
	}
}

func tableBytes(b *testing.B, schema string) (bytes float64) {
	b.Helper()
	c, err := pgx.Connect(b.Context(), server.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context())
	err = c.QueryRow(b.Context(), `SELECT sum(pg_total_relation_size(c.oid))::float8 FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`, schema).Scan(&bytes)
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

func benchmarkSpace(b *testing.B, e archive.Inner, n, each int, size func() float64) {
	fillLifelike(b, e, n, each)
	before := size()
	store := newMemory()
	a := newEngine(b, archive.Options{Engine: e, Objects: store, Logger: slog.New(slog.DiscardHandler)}.WithWidth(256))
	begun := time.Now()
	if err := a.Pass(b.Context()); err != nil {
		b.Fatal(err)
	}
	took := time.Since(begun)
	total := 0
	for _, name := range store.names() {
		total += len(store.get(name))
	}
	b.ReportMetric(before/float64(n), "B/event-before")
	b.ReportMetric(size()/float64(n), "B/event-after")
	b.ReportMetric(float64(total)/float64(n), "B/event-object")
	b.ReportMetric(float64(n)/took.Seconds(), "events-moved/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRead reads one event with its texts: from the engine, from an object that is not cached, and from a cached
// one.
func BenchmarkRead(b *testing.B) {
	const events = 1 << 15
	bucket := httptest.NewServer(&objectstest.Server{})
	defer bucket.Close()
	for name, store := range map[string]func(b *testing.B) objects.Store{
		"engine": func(*testing.B) objects.Store { return nil },
		"folder": folder,
		"s3":     func(b *testing.B) objects.Store { return bucketOf(b, bucket.URL) },
	} {
		for _, cached := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/cached=%v", name, cached), func(b *testing.B) {
				e, err := pebblestore.Open(pebblestore.Options{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				fillLifelike(b, e, events, 64)
				var read storage.Engine = e
				if store := store(b); store != nil {
					o := archive.Options{Engine: e, Objects: store, CacheBytes: 1 << 30}
					if !cached {
						o.CacheBytes = 1
					}
					a := newEngine(b, o.WithWidth(256))
					if err := a.Pass(b.Context()); err != nil {
						b.Fatal(err)
					}
					read = a
				}
				random := rand.New(rand.NewPCG(1, 1))
				readOne := func(at id.Index) {
					if _, err := read.EventsAt(b.Context(), red, []id.Index{at}, both); err != nil {
						b.Fatal(err)
					}
				}
				for at := id.Index(0); at < events; at += 256 {
					readOne(at)
				}
				for b.Loop() {
					readOne(id.Index(random.IntN(events)))
				}
			})
		}
	}
}

func bucketOf(b *testing.B, endpoint string) objects.Store {
	b.Helper()
	environment := map[string]string{"AWS_ACCESS_KEY_ID": objectstest.AccessKey, "AWS_SECRET_ACCESS_KEY": "HIDDEN-key"}
	address := fmt.Sprintf("s3://bucket/%d?endpoint=%s", schemas.Add(1), url.QueryEscape(endpoint))
	store, err := objects.New(address, objects.Options{Getenv: func(n string) string { return environment[n] }})
	if err != nil {
		b.Fatal(err)
	}
	return store
}

// BenchmarkScan reads all events with their texts, in order. An object takes some milliseconds, as over a network.
func BenchmarkScan(b *testing.B) {
	const events, way = 1 << 14, 10 * time.Millisecond
	e, err := pebblestore.Open(pebblestore.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	fillLifelike(b, e, events, 64)
	store := newMemory()
	a := newEngine(b, archive.Options{Engine: e, Objects: distant{store, way}, CacheBytes: 4 << 20}.WithWidth(256))
	if err := a.Pass(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, err := range a.Events(b.Context(), red, 0, events, both) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// distant is an object store with a long round-trip time.
type distant struct {
	*memory
	way time.Duration
}

func (d distant) Read(ctx context.Context, name string, limit int64) ([]byte, string, error) {
	time.Sleep(d.way)
	return d.memory.Read(ctx, name, limit)
}

// BenchmarkAppend appends batches of 64 events, alone and while older events are moved.
func BenchmarkAppend(b *testing.B) {
	for _, moving := range []bool{false, true} {
		b.Run(fmt.Sprintf("moving=%v", moving), func(b *testing.B) {
			e, err := pebblestore.Open(pebblestore.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			fillLifelike(b, e, 1<<17, 256)
			a := newEngine(b, archive.Options{Engine: e, Objects: folder(b)})
			ctx, stop := context.WithCancel(b.Context())
			var worker sync.WaitGroup
			if moving {
				worker.Go(func() { _ = a.Move(ctx, red) })
			}
			w := storagetest.NewWriter(blue)
			var took []time.Duration
			for b.Loop() {
				batch := w.Next(64)
				begun := time.Now()
				if err := a.Append([]storage.Batch{batch}).Wait()[0]; err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			stop()
			worker.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
