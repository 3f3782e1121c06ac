package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/tlog"
)

// coldReads measures what a server answers that was just started and has nothing
// decoded, compressed or proved: each thing is asked for once, in random order. The
// system's own cache of files is warm. The server is warm in the end.
func (s *suite) coldReads(ctx context.Context) error {
	l := s.library
	for _, c := range []struct {
		name    string
		request func(tile int) []byte
	}{
		{"inclusion", func(tile int) []byte { return l.proof(tile * tlog.TileWidth) }},
		{"tile", l.tile}, {"entries", l.entries}, {"entries-gzip", l.packed},
	} {
		if err := s.restart(ctx); err != nil {
			return fmt.Errorf("%s, cold: %w", c.name, err)
		}
		if err := s.cold(c.name, c.request); err != nil {
			return fmt.Errorf("%s, cold: %w", c.name, err)
		}
	}
	return l.warm()
}

// restart ends the library's server and starts another one on its data.
func (s *suite) restart(ctx context.Context) (err error) {
	if err := s.library.service.stop(); err != nil {
		return err
	}
	s.library.service, err = s.serveLibrary(ctx, s.library.dir, s.library.size)
	return err
}

func (s *suite) cold(name string, request func(tile int) []byte) error {
	const connections = 16
	order := rand.New(rand.NewPCG(8, 0)).Perm(max(1, s.library.size/tlog.TileWidth))
	limit := loopLimit{Time: 10 * time.Minute, Count: len(order)}
	took, err := closedLoop(connections, limit, func(int) (step, error) {
		c, err := dialConn(s.library.service.url())
		return func(n int) error {
			_, err := c.Expect(http.StatusOK, request(order[n]))
			return err
		}, err
	})
	if err != nil {
		return err
	}
	s.emitLoad(fmt.Sprintf("read/cold/leaves=%d/resource=%s", s.Leaves, name), took, 1, "requests/s")
	return nil
}
