package main

import (
	"context"
	"sync"
)

// minDepth is how many events for each lane may wait or be under way at least.
const minDepth = 64

// outgoing is one event on its way.
type outgoing struct {
	line     uint64 // in its file, from 0
	trace    string
	envelope []byte
}

// lanes hands events to a fixed number of lanes. Events of one trace that wait or
// are under way at the same time are in the same lane, so one lane sends them in
// order; other traces go where the fewest events are. Memory is bounded by what
// is under way, whatever the number of traces.
type lanes struct {
	queues []chan outgoing
	room   chan struct{} // holds one token for each event that waits or is under way

	mu     sync.Mutex
	load   []int             // events of each lane
	claims map[string]*claim // by trace, while it has events
}

// claim is a lane's hold on a trace.
type claim struct{ lane, events int }

// newLanes makes n lanes for senders that take up to batch events at a time.
func newLanes(n, batch int) *lanes {
	depth := max(minDepth, 2*batch) // one batch is under way, another gathers
	l := &lanes{queues: make([]chan outgoing, n), room: make(chan struct{}, n*depth), load: make([]int, n), claims: map[string]*claim{}}
	for i := range l.queues {
		l.queues[i] = make(chan outgoing, n*depth) // room for all: put never waits in here
	}
	return l
}

// put queues an event, after all that were put before. It waits while too many
// are under way.
func (l *lanes) put(ctx context.Context, o outgoing) error {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.queues[l.claim(o.trace)] <- o
	return nil
}

// close says that nothing more will be put.
func (l *lanes) close() {
	for _, queue := range l.queues {
		close(queue)
	}
}

func (l *lanes) claim(trace string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.claims[trace]
	if c == nil {
		c = &claim{lane: l.lightest()}
		l.claims[trace] = c
	}
	c.events++
	l.load[c.lane]++
	return c.lane
}

func (l *lanes) lightest() int {
	best := 0
	for i, load := range l.load {
		if load < l.load[best] {
			best = i
		}
	}
	return best
}

// take waits for an event in a lane and returns it with those right behind it, up
// to most; nil when there will be no more.
func take(queue <-chan outgoing, most int) []outgoing {
	first, ok := <-queue
	if !ok {
		return nil
	}
	events := []outgoing{first}
	for len(events) < most {
		select {
		case next, ok := <-queue:
			if !ok {
				return events
			}
			events = append(events, next)
		default:
			return events
		}
	}
	return events
}

// done says that an event which was taken from a queue has been answered.
func (l *lanes) done(o outgoing) {
	l.mu.Lock()
	c := l.claims[o.trace]
	l.load[c.lane]--
	if c.events--; c.events == 0 {
		delete(l.claims, o.trace)
	}
	l.mu.Unlock()
	<-l.room
}
