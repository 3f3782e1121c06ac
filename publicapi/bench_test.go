package publicapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// BenchmarkGet repeats the same request on an in-memory store.
func BenchmarkGet(b *testing.B) {
	w := newWorld(b)
	w.append(&w.red, id.DiscloseFull, names("e", 3000)...)
	prefix := "/o/" + w.red.id.String()
	for _, c := range []struct{ name, target, coding string }{
		{"head", "/v1/public/orgs/red/transparency/head", ""},
		{"inclusion", redInclusion + "?log_index=1234", ""},
		{"consistency", redConsistency + "?from=1000", ""},
		{"bundle", "/v1/public/orgs/red/verify/e-1234", ""},
		{"verify", "/v1/public/orgs/red/verify/e-1234?verify=1", ""},
		{"tlog-proof", "/v1/public/orgs/red/verify/e-1234?format=tlog-proof", ""},
		{"cose", "/v1/public/orgs/red/verify/e-1234?format=cose", ""},
		{"tile", prefix + "/tile/0/004", ""},
		{"tile-partial", prefix + "/tile/0/011.p/184", ""},
		{"entries", prefix + "/tile/entries/004", ""},
		{"entries-gzip-kept", prefix + "/tile/entries/004", "gzip"},
		{"entries-gzip-made", prefix + "/tile/entries/004.p/255", "gzip"}, // partial bundles are not kept
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.timed(c.target, c.coding)
			}
		})
	}
}

// BenchmarkGetCold sends each request once to a server that was just started, so nothing is cached.
func BenchmarkGetCold(b *testing.B) {
	w := newWorld(b)
	w.append(&w.red, id.DiscloseFull, names("e", 3000)...)
	prefix := "/o/" + w.red.id.String() + "/"
	const full = 3000 / tlog.TileWidth
	for _, c := range []struct {
		name   string
		target func(i int) (target, coding string)
	}{
		{"inclusion", func(i int) (string, string) { return fmt.Sprintf(redInclusion+"?log_index=%d", i*tlog.TileWidth), "" }},
		{"tile", func(i int) (string, string) {
			return prefix + tlog.Tile{Index: uint64(i), Width: tlog.TileWidth}.Path(), ""
		}},
		{"entries", func(i int) (string, string) {
			return prefix + tlog.Bundle{Index: uint64(i), Width: tlog.TileWidth}.Path(), ""
		}},
		{"entries-gzip", func(i int) (string, string) {
			return prefix + tlog.Bundle{Index: uint64(i), Width: tlog.TileWidth}.Path(), "gzip"
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if i%full == 0 {
					b.StopTimer()
					if err := w.ledgers.Close(); err != nil {
						b.Fatal(err)
					}
					w.open(w.anchors)
					w.timed("/v1/public/orgs/red/transparency/head", "") // the ledger is open then
					b.StartTimer()
				}
				w.timed(c.target(i % full))
				i++
			}
		})
	}
}

// timed sends a GET that must succeed, without the additional checks of tests.
func (w *world) timed(target, coding string) {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	if coding != "" {
		r.Header.Set("Accept-Encoding", coding)
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Encoding") != coding {
		w.Fatalf("got %d %v", answer.Code, answer.Header())
	}
}
