package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/agentledger/agentledger/tlog"
)

// offeredRate is in events a second.
const offeredRate = 1_000

// offers measures latencies at an offered rate that is far below the limit:
// until the acknowledgement, and until a checkpoint that covers the event can
// be fetched.
func (s *suite) offers(ctx context.Context) error {
	err := s.serving(ctx, func(v *service, m *member) error {
		requests, err := posts("offered", s.requests(3*offeredRate), always(m))
		if err != nil {
			return err
		}
		return s.offer("ours", v.url(), get("/o/"+m.Organization.String()+"/checkpoint"), requests, sequence)
	})
	if err != nil {
		return err
	}
	if err := s.offerDisk(); err != nil {
		return err
	}
	for _, settings := range offeredSettings() {
		err := s.servingTessera(settings, func(p *process) error {
			return s.offer("tessera/"+settings.String(), p.url(), get("/checkpoint"), adds(1000), index)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// offeredSettings are those of the peer: each age with the shortest interval between checkpoints, and the default age
// with a longer one. With the default interval of 10 s no load here would see its checkpoints.
func offeredSettings() (all []peerSettings) {
	defaults := peerDefaults()
	for _, age := range []time.Duration{2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, defaults.Age} {
		all = append(all, peerSettings{Batch: defaults.Batch, Age: age, Checkpoint: 100 * time.Millisecond})
	}
	return append(all, peerSettings{Batch: defaults.Batch, Age: defaults.Age, Checkpoint: time.Second})
}

// offeredLimit is longer than that of other loads: it is slow, so that it takes
// longer to see a p99.
func (s *suite) offeredLimit() loopLimit {
	l := s.limit()
	l.Time *= 3
	return l
}

// sequence reads the index in an answer of ours.
func sequence(body []byte) (uint64, error) {
	var a struct {
		Sequence uint64 `json:"sequence_num"`
	}
	err := json.Unmarshal(body, &a)
	return a.Sequence - 1, err
}

// index reads an answer of the peer.
func index(body []byte) (uint64, error) { return strconv.ParseUint(string(body), 10, 64) }

// offer is the load: requests are begun on a schedule, by idle ones of many
// connections. Of a share of the events the connection that was told of it
// fetches the checkpoint at once; a watcher waits for those that are not under
// it yet.
func (s *suite) offer(name, url string, checkpoint []byte, requests [][]byte, indexOf func([]byte) (uint64, error)) error {
	watcher, err := dialConn(url)
	if err != nil {
		return err
	}
	defer watcher.Close()
	p := watch(sizeOf(watcher, checkpoint))
	var mu sync.Mutex
	var acknowledged latencies
	const connections = 256
	l := s.offeredLimit()
	_, err = openLoop(offeredRate, connections, l, func(int) (timedStep, error) {
		c, err := dialConn(url)
		return func(n int, since time.Time) error {
			body, err := c.Expect(http.StatusCreated, requests[n%len(requests)])
			if err != nil {
				return err
			}
			if n < int(l.Warm.Seconds()*offeredRate) {
				return nil
			}
			took := time.Since(since)
			mu.Lock()
			acknowledged = append(acknowledged, took)
			mu.Unlock()
			at, err := indexOf(body)
			if err == nil && n%4 == 0 {
				p.acknowledged(sizeOf(c, checkpoint), at, since)
			}
			return err
		}, err
	})
	published, watchErr := p.finish()
	if err == nil {
		err = watchErr
	}
	if err == nil {
		s.emitPublished("offered/"+name, acknowledged, published)
	}
	return err
}

// sizeOf fetches the size of a checkpoint over a connection.
func sizeOf(c *conn, request []byte) func() (uint64, error) {
	return func() (uint64, error) {
		body, err := c.Expect(http.StatusOK, request)
		if err != nil {
			return 0, err
		}
		checkpoint, err := tlog.ReadCheckpoint(bytes.Clone(body))
		return uint64(checkpoint.Size), err
	}
}
