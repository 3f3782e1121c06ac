package main

import (
	"context"
	"sync"
)

// minDepth is how many events for each queue may wait or be under way at least.
const minDepth = 64

// outgoingEvent is one event on its way.
type outgoingEvent struct {
	line     uint64 // in its file, from 0
	trace    string
	envelope []byte
}

// sendQueues hands events to a fixed number of senders, each with a queue. Events of one trace that wait or are under
// way at the same time are in the same queue, so one sender sends them in order. Another trace goes to the queue with
// the fewest events. Memory is bounded by the events under way and does not grow with the traces.
type sendQueues struct {
	queues []chan outgoingEvent
	room   chan struct{} // holds one token for each event that waits or is under way

	mu     sync.Mutex
	load   []int                  // events of each queue
	traces map[string]*traceQueue // by trace, while it has events
}

// traceQueue is the queue of a trace while it has events.
type traceQueue struct{ queue, events int }

// newSendQueues makes n queues for senders that take up to batch events at a time.
func newSendQueues(n, batch int) *sendQueues {
	depth := max(minDepth, 2*batch) // one batch is under way, another gathers
	l := &sendQueues{queues: make([]chan outgoingEvent, n), room: make(chan struct{}, n*depth), load: make([]int, n),
		traces: map[string]*traceQueue{}}
	for i := range l.queues {
		l.queues[i] = make(chan outgoingEvent, n*depth) // room for all: put never waits in here
	}
	return l
}

// enqueueEvent queues an event, after all that were put before. It waits while too many are under way.
func (l *sendQueues) enqueueEvent(ctx context.Context, o outgoingEvent) error {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.queues[l.assignQueue(o.trace)] <- o
	return nil
}

// closeQueues says that nothing more will be put.
func (l *sendQueues) closeQueues() {
	for _, queue := range l.queues {
		close(queue)
	}
}

func (l *sendQueues) assignQueue(trace string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.traces[trace]
	if c == nil {
		c = &traceQueue{queue: l.leastLoadedQueue()}
		l.traces[trace] = c
	}
	c.events++
	l.load[c.queue]++
	return c.queue
}

func (l *sendQueues) leastLoadedQueue() int {
	best := 0
	for i, load := range l.load {
		if load < l.load[best] {
			best = i
		}
	}
	return best
}

// takeEvents waits for an event in a queue and returns it with those right behind it, up
// to most; nil when there will be no more.
func takeEvents(queue <-chan outgoingEvent, most int) []outgoingEvent {
	first, ok := <-queue
	if !ok {
		return nil
	}
	events := []outgoingEvent{first}
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

// finishEvent says that an event which was taken from a queue has been answered.
func (l *sendQueues) finishEvent(o outgoingEvent) {
	l.mu.Lock()
	c := l.traces[o.trace]
	l.load[c.queue]--
	if c.events--; c.events == 0 {
		delete(l.traces, o.trace)
	}
	l.mu.Unlock()
	<-l.room
}
