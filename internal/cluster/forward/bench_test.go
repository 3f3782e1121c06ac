package forward_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// processorTime returns the time that this process has used, in microseconds.
func processorTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec+u.Stime.Sec)*1e6 + float64(u.Utime.Usec+u.Stime.Usec)
}

// timedRecorder accepts deadlines, as the writers of servers do.
type timedRecorder struct{ *httptest.ResponseRecorder }

func (timedRecorder) SetReadDeadline(time.Time) error  { return nil }
func (timedRecorder) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkPass measures the processor time of an event of 1 KiB on its owner, and of one that is passed to its owner.
// The difference is the cost of a hop, on both nodes. The client's part is not included.
func BenchmarkPass(b *testing.B) {
	s := newService(b, 2, func(_ *node, w http.ResponseWriter, r *http.Request) error {
		if _, err := edge.ReadBody(r, edge.JSONBody(64<<10)); err != nil {
			return err
		}
		return edge.WriteJSON(w, http.StatusCreated, edge.ErrorBody{Error: strings.Repeat("x", 300)})
	})
	body := strings.Repeat("x", 1024)
	for i, name := range []string{"owner", "passed"} {
		h := s.nodes[i].external.Config.Handler
		b.Run(name, func(b *testing.B) {
			began := processorTime()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					r := httptest.NewRequest("POST", "/red/x", io.NopCloser(strings.NewReader(body)))
					r.ContentLength = int64(len(body))
					h.ServeHTTP(timedRecorder{httptest.NewRecorder()}, r)
				}
			})
			b.ReportMetric((processorTime()-began)/float64(b.N), "cpu-µs/op")
		})
	}
}

// BenchmarkPassTile is BenchmarkPass for a tile of 256 hashes. The difference is saved if a node handles a request for
// a tile itself.
func BenchmarkPassTile(b *testing.B) {
	tile := []byte(strings.Repeat("x", 8<<10))
	s := newService(b, 2, func(_ *node, w http.ResponseWriter, _ *http.Request) error {
		w.Header()["Content-Length"] = []string{"8192"}
		_, err := w.Write(tile)
		return err
	})
	for i, name := range []string{"here", "passed"} {
		h := s.nodes[i].external.Config.Handler
		b.Run(name, func(b *testing.B) {
			began := processorTime()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					h.ServeHTTP(timedRecorder{httptest.NewRecorder()}, httptest.NewRequest("GET", "/red/x", nil))
				}
			})
			b.ReportMetric((processorTime()-began)/float64(b.N), "cpu-µs/op")
		})
	}
}
