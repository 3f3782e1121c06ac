package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
)

// connections are the numbers of concurrent connections, each of which waits for its response.
func connections() []int { return []int{1, 8, 64, 256, 1024} }

// atMost is how many events per second are signed beforehand for a load. A faster load ends early.
func atMost(connections int) int { return min(3_000*connections, 25_000) }

// requests returns how many requests a load may need, including the warm-up.
func (s *suite) requests(perSecond int) int {
	l := s.limit()
	return int((l.Warm + l.Time).Seconds() * float64(perSecond))
}

// ingests measures one event per request: our server, the floor with the same requests, and the peer.
func (s *suite) ingests(ctx context.Context) error {
	return s.serving(ctx, func(v *service, m *member) error {
		floor, err := startChild("floor", m.CreatedOrganization)
		if err != nil {
			return err
		}
		defer floor.stop()
		for _, n := range connections() {
			requests, err := posts(fmt.Sprint("c", n), s.requests(atMost(n)), always(m))
			if err != nil {
				return err
			}
			if err := s.ingest("ours", v.url(), n, requests, once); err != nil {
				return err
			}
			if err := s.ingest("floor", floor.url(), n, requests, again); err != nil {
				return err
			}
			if err := s.ingestTessera(n); err != nil {
				return err
			}
		}
		return nil
	})
}

// Whether a load ends after its requests or repeats them.
const (
	once  = false
	again = true
)

func (s *suite) ingest(name, url string, connections int, requests [][]byte, repeat bool) error {
	r, err := s.send(url, connections, http.StatusCreated, requests, repeat)
	if err != nil {
		return err
	}
	s.emitLoad(fmt.Sprintf("ingest/%s/connections=%d", name, connections), r, 1, "events/s")
	return nil
}

// send is the load of connections that send prepared requests.
func (s *suite) send(url string, connections, status int, requests [][]byte, repeat bool) (loopResult, error) {
	l := s.limit()
	if !repeat {
		l.Count = len(requests)
	}
	return closedLoop(connections, l, func(int) (step, error) {
		c, err := dialConn(url)
		return func(n int) error {
			_, err := c.Expect(status, requests[n%len(requests)])
			return err
		}, err
	})
}

func (s *suite) ingestTessera(connections int) error {
	requests := adds(1000)
	for _, settings := range settings(connections) {
		err := s.servingTessera(settings, func(p *process) error {
			return s.ingest("tessera/"+settings.String(), p.url(), connections, requests, again)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// servingTessera runs f with the peer on a new log.
func (s *suite) servingTessera(settings peerSettings, f func(*process) error) error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	p, err := startChild("tessera", tesseraInput{dir, settings})
	if err != nil {
		return err
	}
	defer p.stop()
	return f(p)
}

// adds returns n requests to the peer, which does not deduplicate entries.
func adds(n int) [][]byte {
	requests := make([][]byte, n)
	payload := text(rand.New(rand.NewPCG(3, 3)), entrySize)
	for i := range requests {
		body := entry(fmt.Sprint("e", i), payload)
		requests[i] = fmt.Appendf(nil, "POST /add HTTP/1.1\r\nHost: bench.example\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	return requests
}
