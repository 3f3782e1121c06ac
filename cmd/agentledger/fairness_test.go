package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// pace is the time between two requests of the quiet organization; windowRequests is how many it sends with and without
// a neighbor.
const (
	pace           = 4 * time.Millisecond
	windowRequests = 64
)

// The cost to a quiet organization of a neighbor of each kind, which keeps 128 requests in flight. One operation is a
// window without the neighbor and one with it, so that other load on the machine affects both equally.
func BenchmarkFairness(b *testing.B) {
	for _, kind := range neighbours() {
		b.Run("events/"+kind.name, func(b *testing.B) {
			s := newStreet(b)
			requests := s.quiet.requests(b, 2*windowRequests*maxWindows, 450)
			next := 0
			s.measure(b, kind, http.StatusCreated, func() []byte { next++; return requests[next-1] })
		})
	}
	for _, kind := range neighbours() {
		b.Run("head/"+kind.name, func(b *testing.B) {
			s := newStreet(b)
			get := s.quiet.get("/v1/public/orgs/quiet/transparency/head")
			s.measure(b, kind, http.StatusOK, func() []byte { return get })
		})
	}
}

// BenchmarkSignIns is the cost of 50 users who sign in at once, each by password: hashing is the most expensive work
// that a stranger can request. The users are unknown and from different networks, so that no limit of attempts rejects
// them before the hash.
func BenchmarkSignIns(b *testing.B) {
	kind := neighbourKind{name: "sign-ins", underway: 50, requests: func(*testing.B, *resident) [][]byte {
		requests := make([][]byte, 20_000)
		for i := range requests {
			body := fmt.Sprintf(`{"email":"person-%d@example.com","password":"a wrong password"}`, i)
			requests[i] = fmt.Appendf(nil, "POST /v1/id/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
				"X-Forwarded-For: 10.%d.%d.1\r\nContent-Length: %d\r\n\r\n%s", i/256, i%256, len(body), body)
		}
		return requests
	}}
	s := newStreet(b, "--client-address-header", "X-Forwarded-For")
	requests := s.quiet.requests(b, 2*windowRequests*maxWindows, 450)
	next := 0
	s.measure(b, kind, http.StatusCreated, func() []byte { next++; return requests[next-1] })
}

// maxWindows bounds the operations, because events are signed beforehand.
const maxWindows = 100

// street is a server with two organizations.
type street struct {
	*process
	quiet, loud resident
}

func newStreet(b *testing.B, more ...string) *street {
	p := startProcess(b, b.TempDir(), append([]string{"--log-level", "info"}, more...)...)
	return &street{p, resident{p, p.found(b.Context(), "quiet", nil)}, resident{p, p.found(b.Context(), "loud", nil)}}
}

// measure sends requests at a steady pace, alternately without and with a neighbor.
func (s *street) measure(b *testing.B, kind neighbourKind, status int, request func() []byte) {
	n := moveIn(b, s.main, kind, kind.requests(b, &s.loud))
	c := dial(b, s.main)
	window := func() []time.Duration {
		took := make([]time.Duration, windowRequests)
		for i := range took {
			began := time.Now()
			if got := c.roundTrip(b, request()); got != status {
				b.Fatalf("status %d, want %d", got, status)
			}
			took[i] = time.Since(began)
			time.Sleep(pace - took[i])
		}
		return took
	}
	var alone, beside []time.Duration
	for windows := 0; b.Loop(); windows++ {
		if windows == maxWindows {
			b.Fatalf("more than %d operations", maxWindows)
		}
		alone = append(alone, window()...)
		n.begin()
		beside = append(beside, window()...)
		n.rest()
	}
	b.Logf("%s: %s", kind.name, n.leave())
	report(b, alone, beside)
}

func report(b *testing.B, alone, beside []time.Duration) {
	slices.Sort(alone)
	slices.Sort(beside)
	at := func(took []time.Duration, percent int) float64 {
		return float64(took[len(took)*percent/100].Nanoseconds()) / 1e3
	}
	b.ReportMetric(0, "ns/op") // the pace, which means nothing
	b.ReportMetric(at(alone, 50), "quiet-p50-µs")
	b.ReportMetric(at(beside, 50), "p50-µs")
	b.ReportMetric(at(alone, 99), "quiet-p99-µs")
	b.ReportMetric(at(beside, 99), "p99-µs")
	b.ReportMetric(at(beside, 50)/at(alone, 50), "x-quiet")
	b.ReportMetric(at(beside, 99)/at(alone, 99), "x-quiet-p99")
}
