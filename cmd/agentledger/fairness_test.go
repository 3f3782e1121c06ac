package main

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// pace is the time between two requests of the quiet organization.
const pace = 4 * time.Millisecond

// One quiet organization, alone and beside a neighbour of each kind that keeps
// 128 requests under way: what the neighbour costs it.
func BenchmarkFairness(b *testing.B) {
	for _, kind := range neighbours() {
		b.Run("events/"+kind.name, func(b *testing.B) {
			w := newStreet(b)
			requests := w.quiet.requests(b, b.N, 450)
			w.measure(b, kind, func(i int) []byte { return requests[i] }, http.StatusCreated)
		})
	}
	for _, kind := range neighbours() {
		b.Run("head/"+kind.name, func(b *testing.B) {
			w := newStreet(b)
			get := fmt.Appendf(nil, "GET /v1/public/orgs/%s/transparency/head HTTP/1.1\r\nHost: log.test\r\n\r\n", w.quiet.org.Slug)
			w.measure(b, kind, func(int) []byte { return get }, http.StatusOK)
		})
	}
}

// street is a server with two organizations.
type street struct {
	*process
	quiet, loud resident
}

// resident is an organization that sends events.
type resident struct {
	p   *process
	org founded
}

func newStreet(b *testing.B) *street {
	p := startProcess(b, b.TempDir(), "--log-level", "info")
	return &street{p, resident{p, p.found(b.Context(), "quiet", nil)}, resident{p, p.found(b.Context(), "loud", nil)}}
}

// measure sends b.N requests in a steady pace beside a neighbour.
func (w *street) measure(b *testing.B, kind neighbourKind, request func(i int) []byte, status int) {
	stop := func() string { return "" }
	if kind.requests != nil {
		stop = besides(b, w.main, kind.requests(b, &w.loud))
		time.Sleep(500 * time.Millisecond) // until it is in full swing
	}
	c := dial(b, w.main)
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		if got := c.roundTrip(b, request(i)); got != status {
			b.Fatalf("status %d, want %d", got, status)
		}
		took[i] = time.Since(began)
		time.Sleep(pace - took[i])
	}
	b.StopTimer()
	if told := stop(); told != "" && b.N > 1 {
		b.Logf("%s: %s", kind.name, told)
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // the pace, which says nothing
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// neighbourKind is a way to be loud. Without requests there is nobody.
type neighbourKind struct {
	name     string
	requests func(b *testing.B, loud *resident) [][]byte
}

func neighbours() []neighbourKind {
	return []neighbourKind{
		{"alone", nil},
		{"valid", func(b *testing.B, loud *resident) [][]byte { return loud.requests(b, 20_000, 450) }},
		{"valid-large", func(b *testing.B, loud *resident) [][]byte { return loud.requests(b, 400, 150<<10) }},
		{"forged", func(b *testing.B, loud *resident) [][]byte { return loud.forged(b, 450) }},
		{"forged-large", func(b *testing.B, loud *resident) [][]byte { return loud.forged(b, 250<<10) }},
		{"garbage", func(_ *testing.B, loud *resident) [][]byte {
			return [][]byte{loud.post(loud.org.IngestKey.Secret, []byte(strings.Repeat(`[{"a":`, 170)))}
		}},
		{"too-large", func(_ *testing.B, loud *resident) [][]byte {
			return [][]byte{loud.post(loud.org.IngestKey.Secret, make([]byte, 300<<10))}
		}},
		{"unauthenticated", func(_ *testing.B, loud *resident) [][]byte {
			return [][]byte{loud.post("ik_"+strings.Repeat("x", 40), []byte(`{}`))}
		}},
		{"reconfiguring", func(b *testing.B, loud *resident) [][]byte { return loud.reconfiguring(b) }},
	}
}

// requests returns n events as they go over the wire.
func (r *resident) requests(b *testing.B, n, payload int) [][]byte {
	b.Helper()
	w, err := newWorker(r.p.main, r.org, client.Retry{})
	if err != nil {
		b.Fatal(err)
	}
	requests := make([][]byte, n)
	for i := range requests {
		body, err := w.signer.SignEvent(client.Event{
			EventID: id.Event(fmt.Sprint(r.org.Slug, "-", payload, "-", i)), TraceID: "bench", ActorPrincipal: "bench",
			ActionKind: "tool_call", Tool: "acme.orders.read", Decision: id.Allow,
			Payload: map[string]any{"text": strings.Repeat("x", payload)},
		})
		if err != nil {
			b.Fatal(err)
		}
		requests[i] = r.post(r.org.IngestKey.Secret, body)
	}
	return requests
}

func (r *resident) post(token string, body []byte) []byte {
	return fmt.Appendf(nil, "POST /v1/ingest/events HTTP/1.1\r\nHost: log.test\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		token, len(body), body)
}

// forged returns an event that is another one than was signed.
func (r *resident) forged(b *testing.B, payload int) [][]byte {
	b.Helper()
	good := r.requests(b, 1, payload)[0]
	return [][]byte{bytes.Replace(good, []byte(`"text":"x`), []byte(`"text":"y`), 1)}
}

// reconfiguring changes the organization all the time, between valid events.
func (r *resident) reconfiguring(b *testing.B) [][]byte {
	b.Helper()
	o, err := newOperator(r.p.main, r.p.identity)
	if err != nil {
		b.Fatal(err)
	}
	if err := o.login(b.Context(), "ops@loud.example", testPassword); err != nil {
		b.Fatal(err)
	}
	var mixed [][]byte
	for i, event := range r.requests(b, 10_000, 450) {
		body := fmt.Sprintf(`{"disclosure":%q}`, []string{"record", "commitment"}[i%2])
		change := fmt.Appendf(nil, "PATCH /v1/console/organization HTTP/1.1\r\nHost: log.test\r\nCookie: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			o.cookie(b), len(body), body)
		mixed = append(mixed, event, change)
	}
	return mixed
}

// cookie returns the session as a header.
func (o *operator) cookie(b *testing.B) string {
	b.Helper()
	r, err := http.NewRequest("GET", o.identity, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range o.http.Jar.Cookies(r.URL) {
		return c.String()
	}
	b.Fatal("no session")
	return ""
}
