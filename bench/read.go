package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/agentledger/agentledger/tlog"
)

// reads measures reads at random positions of a large log, after all of it was read once, next to a static response of the
// same length from net/http.
func (s *suite) reads(ctx context.Context) error {
	if s.library == nil {
		var err error
		if s.library, err = s.collect(ctx); err != nil {
			return err
		}
	}
	for _, r := range s.library.resources() {
		if err := s.read(s.library.service.url(), r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// resource is a kind of request. request must not be called concurrently with the same source of randomness.
type resource struct {
	name    string
	request func(*rand.Rand) []byte
}

// library is a server with one large log. All rounds read the same.
type library struct {
	service *service
	member  *member
	size    int
	events  int // except system events
}

func (l *library) resources() []resource {
	fixed := func(request []byte) func(*rand.Rand) []byte {
		return func(*rand.Rand) []byte { return request }
	}
	entries := func(n int) []byte {
		return l.member.tiled(tlog.Bundle{Index: uint64(n), Width: tlog.TileWidth}.Path())
	}
	bundle := func(n int, format string) []byte {
		return l.member.public(fmt.Sprintf("/verify/e%d?format=%s", n, format))
	}
	full := max(1, l.size/tlog.TileWidth)
	return []resource{
		{"inclusion", func(r *rand.Rand) []byte { return l.member.proof(r.IntN(l.size)) }},
		{"tile", func(r *rand.Rand) []byte { return l.member.tile(r.IntN(full)) }},
		{"entries", func(r *rand.Rand) []byte { return entries(r.IntN(full)) }},
		{"entries-gzip", func(r *rand.Rand) []byte { return withHeader(entries(r.IntN(full)), "Accept-Encoding", "gzip") }},
		{"bundle", func(r *rand.Rand) []byte { return bundle(r.IntN(l.events), "json") }},
		{"tlog-proof", func(r *rand.Rand) []byte { return bundle(r.IntN(l.events), "tlog-proof") }},
		{"head", fixed(l.member.public("/transparency/head"))},
		{"checkpoint", fixed(l.member.tiled("checkpoint"))},
		{"evaluate", fixed(l.member.question(1009))},
	}
}

// read measures one resource, then a server that answers the same requests with one fixed response of ours.
func (s *suite) read(url string, r resource) error {
	answer, err := s.ask(url, r)
	if err != nil {
		return err
	}
	static, err := startChild("static", answer)
	if err != nil {
		return err
	}
	defer static.stop()
	if err := s.readFrom("ours", url, r); err != nil {
		return err
	}
	return s.readFrom("static", static.url(), r)
}

func (s *suite) ask(url string, r resource) ([]byte, error) {
	c, err := dialConn(url)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Expect(http.StatusOK, r.request(rand.New(rand.NewPCG(6, 0))))
}

func (s *suite) readFrom(name, url string, r resource) error {
	took, err := s.askRandomly(url, r, 64)
	if err != nil {
		return err
	}
	s.emitLoad(fmt.Sprintf("read/%s/leaves=%d/resource=%s", name, s.Leaves, r.name), took, 1, "requests/s")
	return nil
}

// askRandomly runs the load: connections that send random requests.
func (s *suite) askRandomly(url string, r resource, connections int) (loopResult, error) {
	return closedLoop(connections, s.limit(), func(worker int) (step, error) {
		random := rand.New(rand.NewPCG(6, uint64(worker)))
		c, err := dialConn(url)
		return func(int) error {
			_, err := c.Expect(http.StatusOK, r.request(random))
			return err
		}, err
	})
}
