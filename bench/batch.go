package main

import (
	"context"
	"fmt"
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
			for _, events := range []lines{1, 64, 1000} {
				if err := s.batch("batch/ours", v, m, connections, events); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// batch is one load.
func (s *suite) batch(name string, v *service, m *member, connections int, events lines) error {
	name += fmt.Sprintf("/connections=%d/lines=%d", connections, events)
	n := 2 * s.requests(atMost(connections))
	if events > 1 {
		n = 4 * s.requests(atMost(64)) / int(events)
	}
	requests, err := events.posts(fmt.Sprintf("b%d.%d", connections, events), n, always(m)) // ids differ by load
	if err != nil {
		return err
	}
	meter := s.meter(v.cmd.Process.Pid)
	r, err := s.sendLines(v.url(), connections, requests, events)
	if err != nil {
		return err
	}
	s.emitLoad(name, r, int(events), "events/s", meter.each(r.Done*int(events))...)
	return nil
}

// sendLines is send that looks at each event of an answer. It takes twice the
// window, as full batches are few.
func (s *suite) sendLines(url string, connections int, requests [][]byte, events lines) (loopResult, error) {
	l := s.limit()
	l.Time, l.Count = 2*l.Time, len(requests)
	return closedLoop(connections, l, func(int) (step, error) {
		c, err := dialConn(url)
		return func(n int) error { return events.send(c, requests[n]) }, err
	})
}
