package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/bench/load"
)

const (
	batchPath   = "/v1/ingest/events/batch"
	mediaNDJSON = "application/x-ndjson"
)

// batches measures many events a request, beside one event a request over as
// many connections and on the same server. Four full batches are what the queue
// takes of one organization; of more, some lines would be told to come again.
func (s *suite) batches(ctx context.Context) error {
	return s.serving(ctx, func(v *service, m *member) error {
		for _, connections := range []int{1, 4} {
			for _, lines := range []int{1, 64, 1000} {
				if err := s.batch("batch/ours", v, m, connections, lines); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// batch is one load; lines = 1 goes to the route of single events.
func (s *suite) batch(name string, v *service, m *member, connections, lines int) error {
	name += fmt.Sprintf("/connections=%d/lines=%d", connections, lines)
	n := 2 * s.requests(atMost(connections))
	if lines > 1 {
		n = 4 * s.requests(atMost(64)) / lines
	}
	bodies, err := events(fmt.Sprintf("b%d.%d", connections, lines), n*lines, always(m)) // ids differ by load
	if err != nil {
		return err
	}
	path, media, status := eventsPath, mediaJSON, http.StatusCreated
	if lines > 1 {
		path, media, status = batchPath, mediaNDJSON, http.StatusOK
	}
	requests := make([][]byte, n)
	for i := range requests {
		requests[i] = m.post(path, media, bytes.Join(bodies[i*lines:(i+1)*lines], []byte("\n")))
	}
	meter := s.meter(v.cmd.Process.Pid)
	r, err := s.sendLines(v.url(), connections, status, requests, lines)
	if err != nil {
		return err
	}
	s.emitLoad(name, r, lines, "events/s", meter.each(r.Done*lines)...)
	return nil
}

var errRefused = errors.New("a line was refused")

// sendLines is send that looks at each line of an answer. It takes twice the
// window, as full batches are few.
func (s *suite) sendLines(url string, connections, status int, requests [][]byte, lines int) (load.Result, error) {
	l := s.limit()
	l.Time, l.Count = 2*l.Time, len(requests)
	return load.Closed(connections, l, func(int) (load.Step, error) {
		c, err := load.Dial(url)
		return func(n int) error {
			body, err := c.Expect(status, requests[n])
			if err == nil && bytes.Count(body, []byte(`"status":"created"`)) != lines {
				err = fmt.Errorf("%w: %.300s", errRefused, body)
			}
			return err
		}, err
	})
}
