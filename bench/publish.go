package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Every sampled-th event is awaited until it is published.
const sampled = 16

// publishes measures the time until an event is acknowledged and until a checkpoint covers it, under a moderate load in
// process.
func (s *suite) publishes(ctx context.Context) error {
	const senders = 64
	for _, c := range s.contenders(ctx, []peerSettings{{Batch: senders / 2, Age: 2 * time.Millisecond, Checkpoint: 100 * time.Millisecond}}) {
		err := s.with(ctx, c, func(log contender) error {
			size := func() (uint64, error) { return log.published(ctx) }
			p := watch(size)
			r, err := s.append(ctx, log, senders, func(n int, index uint64, since time.Time) {
				if n%sampled == 0 {
					p.acknowledged(size, index, since)
				}
			})
			took, watchErr := p.finish()
			if err := errors.Join(err, watchErr); err != nil {
				return err
			}
			s.emitPublished(fmt.Sprintf("publish/%s/senders=%d", c.name, senders), r.Took, took)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) emitPublished(name string, acknowledged, published latencies) {
	s.emit(name, len(acknowledged),
		micros(acknowledged, 0.5, "ack-p50-µs"), micros(acknowledged, 0.99, "ack-p99-µs"),
		micros(published, 0.5, "published-p50-µs"), micros(published, 0.99, "published-p99-µs"))
}

// publications measures when checkpoints cover acknowledged events.
type publications struct {
	mu      sync.Mutex
	waiting []publication
	took    latencies
	err     error

	stop chan struct{}
	done chan struct{}
}

type publication struct {
	index uint64
	since time.Time
}

const (
	watchEvery   = time.Millisecond // how often an awaited checkpoint is polled
	watchAtLeast = 3 * time.Second  // how long checkpoints are awaited after the load
)

// watch starts to poll the size of the published checkpoint while events wait for one. size is called by one goroutine at a
// time.
func watch(size func() (uint64, error)) *publications {
	p := &publications{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for p.poll(size) {
			select {
			case <-p.stop:
				return
			case <-time.After(watchEvery):
			}
		}
	}()
	return p
}

// acknowledged checks, with the caller's size function, whether an event is already covered, and otherwise leaves it to the
// watcher.
func (p *publications) acknowledged(size func() (uint64, error), index uint64, since time.Time) {
	got, err := size()
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.err = err
	case got > index:
		p.took = append(p.took, now.Sub(since))
	default:
		p.waiting = append(p.waiting, publication{index, since})
	}
}

// poll records the events that are now covered. It returns false after an error.
func (p *publications) poll(size func() (uint64, error)) bool {
	p.mu.Lock()
	idle := len(p.waiting) == 0
	p.mu.Unlock()
	if idle {
		return true
	}
	got, err := size()
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err = err
		return false
	}
	still := p.waiting[:0]
	for _, w := range p.waiting {
		if got > w.index {
			p.took = append(p.took, now.Sub(w.since))
		} else {
			still = append(still, w)
		}
	}
	p.waiting = still
	return true
}

// finish waits for the remaining events and ends the watcher.
func (p *publications) finish() (latencies, error) {
	for end := time.Now().Add(watchAtLeast); time.Now().Before(end) && p.backlog() > 0; {
		time.Sleep(watchEvery)
	}
	close(p.stop)
	<-p.done
	if p.err == nil && len(p.waiting) > 0 {
		p.err = fmt.Errorf("%d events were not published in time", len(p.waiting))
	}
	return p.took, p.err
}

func (p *publications) backlog() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}
