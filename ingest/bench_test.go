package ingest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// discard is a ResponseWriter that keeps only the status.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// serve sends a body to a path and checks the status.
func (w *world) serve(b *testing.B, path, body string, status int) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header["Authorization"] = []string{"Bearer " + w.red.token}
	if path != batchPath {
		r.Header["Content-Type"] = []string{"application/json"}
	}
	d := discard{header: make(http.Header)}
	w.handler.ServeHTTP(&d, r)
	if d.status != status {
		b.Errorf("got %d, want %d", d.status, status)
	}
}

// events returns n valid events of about 1 KiB.
func (w *world) events(n int) []string {
	bodies := make([]string, n)
	payload := fields{"purpose": strings.Repeat("x", 400), "salt": "AAAAAAAAAAAAAAAAAAAAAA"}
	for i := range bodies {
		bodies[i] = w.envelope(&w.red, fmt.Sprint("evt-", i), fields{"tool_name": "acme.allow", "payload": payload})
	}
	return bodies
}

// BenchmarkEvent measures a whole request with one event, with many concurrent senders and an in-memory store, so
// that it shows the cost of the service itself.
func BenchmarkEvent(b *testing.B) {
	w := newWorld(b)
	w.activate(&w.red, "pol-1", rules)
	bodies := w.events(b.N)
	var next atomic.Int64
	b.SetParallelism(64)
	b.ReportAllocs()
	b.SetBytes(int64(len(bodies[0])))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.serve(b, eventsPath, bodies[next.Add(1)-1], http.StatusCreated)
		}
	})
}

// BenchmarkResult is BenchmarkEvent for results of stored intents, both cached and read from the store.
func BenchmarkResult(b *testing.B) {
	for _, remembered := range []bool{true, false} {
		b.Run(fmt.Sprint("remembered=", remembered), func(b *testing.B) {
			w := newWorld(b)
			w.activate(&w.red, "pol-1", rules)
			payload := func(phase string) fields {
				return fields{"purpose": strings.Repeat("x", 400), "salt": "AAAAAAAAAAAAAAAAAAAAAA", "phase": phase, "call_id": "c"}
			}
			const intents = 1000
			for i := range intents {
				w.serve(b, eventsPath, w.envelope(&w.red, fmt.Sprint("i", i), fields{"tool_name": "acme.allow", "payload": payload("intent")}), http.StatusCreated)
			}
			if !remembered {
				w.open()
			}
			bodies := make([]string, b.N)
			for i := range bodies {
				bodies[i] = w.envelope(&w.red, fmt.Sprint("r", i), fields{
					"tool_name": "acme.allow", "payload": payload("result"), "parent_event_id": fmt.Sprint("i", i%intents),
				})
			}
			var next atomic.Int64
			b.SetParallelism(64)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					w.serve(b, eventsPath, bodies[next.Add(1)-1], http.StatusCreated)
				}
			})
		})
	}
}

// BenchmarkBatch is BenchmarkEvent with the same events in batches by four senders. All numbers are per event.
func BenchmarkBatch(b *testing.B) {
	for _, lines := range []int{1, 20, 200, 1000} {
		b.Run(fmt.Sprint("lines=", lines), func(b *testing.B) {
			w := newWorld(b)
			w.activate(&w.red, "pol-1", rules)
			bodies := w.events(b.N)
			batches := slices.Collect(slices.Chunk(bodies, lines))
			var next atomic.Int64
			b.ReportAllocs()
			b.SetBytes(int64(len(bodies[0])))
			b.ResetTimer()
			var group sync.WaitGroup
			for range 4 { // together they do not fill the queue
				group.Go(func() {
					for i := next.Add(1) - 1; i < int64(len(batches)); i = next.Add(1) - 1 {
						w.serve(b, batchPath, ndjson(batches[i]...), http.StatusOK)
					}
				})
			}
			group.Wait()
			if got := w.State(b, w.red.tenant).Size(); got != id.Index(b.N)+1 {
				b.Errorf("size %d after %d events", got, b.N)
			}
		})
	}
}

// BenchmarkStep is BenchmarkEvent for keyless tools: 64 of them report a run each, in lists of some steps. All
// numbers are per step.
func BenchmarkStep(b *testing.B) {
	for _, list := range []int{1, 10, 50} {
		b.Run(fmt.Sprint("list=", list), func(b *testing.B) {
			w := newWorld(b)
			w.activate(&w.red, "pol-1", rules)
			const tools = 64
			payload := `{"purpose":"` + strings.Repeat("x", 400) + `"}`
			var paths [tools]string
			for i := range paths {
				paths[i] = w.startRun(&w.red, runBody) + "/steps"
			}
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for _, path := range paths {
				group.Go(func() {
					for {
						end := next.Add(int64(list))
						n := min(int64(list), int64(b.N)-(end-int64(list)))
						if n <= 0 {
							return
						}
						var body []string
						for i := range n {
							body = append(body, fmt.Sprintf(`{"step_key":"s%d","tool_name":"acme.allow","payload":%s,"status":"succeeded"}`, end-i, payload))
						}
						w.serve(b, path, "["+strings.Join(body, ",")+"]", http.StatusCreated)
					}
				})
			}
			group.Wait()
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	w := newWorld(b)
	body := w.events(1)[0]
	w.serve(b, eventsPath, body, http.StatusCreated)
	b.ReportAllocs()
	for b.Loop() {
		w.serve(b, eventsPath, body, http.StatusOK)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	w := newWorld(b)
	w.activate(&w.red, "pol-1", rules)
	body := w.question(&w.red, fields{"payload": fields{"amount_usd": 12, "currency": "USD"}})
	b.ReportAllocs()
	for b.Loop() {
		w.serve(b, evaluatePath, body, http.StatusOK)
	}
}
