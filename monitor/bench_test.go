package monitor

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

var benchEntries = flag.Int("bench-entries", 200_000, "entries of the log that BenchmarkRead reads")

// The number of entries is part of the name, because a result is meaningless without it.
func BenchmarkRead(b *testing.B) { b.Run(fmt.Sprintf("entries=%d", *benchEntries), benchmarkRead) }

// benchmarkRead follows a log from its first entry to its head, over HTTP from the memory of the same
// process. It measures reading and checking, and the server's part of HTTP. entries/s is the result;
// heap-MiB is the largest live heap, beyond what the server holds.
func benchmarkRead(b *testing.B) {
	h := newHistory(b, "red")
	bundles := map[string][]byte{}
	for first := 0; first < *benchEntries; first += tlog.TileWidth {
		width := min(*benchEntries-first, tlog.TileWidth)
		content, err := tlog.EntryBundle(h.grow(width, 1).texts...)
		if err != nil {
			b.Fatal(err)
		}
		bundles[tlog.Bundle{Index: uint64(first / tlog.TileWidth), Width: uint16(width)}.Path()] = content
		h.texts = h.texts[:0]
	}
	bundles["checkpoint"] = h.note(b)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/")
		if content, ok := bundles[path]; ok {
			_, _ = w.Write(content)
			return
		}
		_, _ = w.Write(h.content(path))
	}))
	b.Cleanup(server.Close)
	log, err := client.OpenTiles(client.Config{BaseURL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	held, largest := heap(), uint64(0)
	n := 0
	m, err := New(Options{
		Log: log, Keys: []tlog.VerifierKey{h.signer.Verifier()},
		Progress: func(read, _ id.Index) {
			if n++; n%5000 == 0 {
				largest = max(largest, heap())
			}
		},
		State: filepath.Join(b.TempDir(), "state"),
	})
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for b.Loop() {
		m.State = filepath.Join(dir, fmt.Sprint(n)) // a new file, so the check begins at the first entry
		mustCheck(b, m, id.Index(*benchEntries), id.Index(*benchEntries))
	}
	b.ReportMetric(float64(*benchEntries)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(max(largest, held)-held)/(1<<20), "heap-MiB")
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
