package edge_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// silentWriter is a ResponseWriter that does nothing.
type silentWriter struct{ header http.Header }

func (w silentWriter) Header() http.Header         { return w.header }
func (silentWriter) WriteHeader(int)               {}
func (w silentWriter) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkEdge measures the cost of a request: without a bound, with a bound and a handler that runs in place, and
// with a handler that may be abandoned.
func BenchmarkEdge(b *testing.B) {
	h := func(w http.ResponseWriter, r *http.Request) error {
		_, err := w.Write([]byte("ok"))
		return err
	}
	for _, bench := range []struct {
		name    string
		handler http.Handler
	}{
		{"no bound", routed(&edge.Edge{}, "GET", "/", h, edge.Fast)},
		{"fast", routed(&edge.Edge{Bound: edge.NewBound(time.Minute)}, "GET", "/", h, edge.Fast)},
		{"in place", routed(&edge.Edge{Bound: edge.NewBound(time.Minute)}, "GET", "/", h, edge.InPlace)},
		{"apart", routed(&edge.Edge{Bound: edge.NewBound(time.Minute)}, "GET", "/", h)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), "GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				bench.handler.ServeHTTP(silentWriter{http.Header{}}, r)
			}
		})
	}
}
