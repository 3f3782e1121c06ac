package main

import (
	"context"
	"sync"
)

// minDepth is the minimum number of events per queue that may wait or be in flight.
const minDepth = 64

// outgoingEvent is one event to send.
type outgoingEvent struct {
	line     uint64 // in its file, from 0
	trace    string
	envelope []byte
}

// sendQueues distributes events to a fixed number of senders, each with a queue. Events of one trace that wait or are in
// flight at the same time are in the same queue, so one sender sends them in order. A new trace goes to the queue with the
// fewest events. Memory is bounded by the events in flight and does not grow with the number of traces.
type sendQueues struct {
	queues []chan outgoingEvent
	room   chan struct{} // contains one token for each event that waits or is in flight

	mu     sync.Mutex
	load   []int                  // events of each queue
	traces map[string]*traceQueue // by trace, while it has events
}

// traceQueue is the queue of a trace while it has events.
type traceQueue struct{ queue, events int }

// newSendQueues returns n queues for senders that take up to batch events at a time.
func newSendQueues(n, batch int) *sendQueues {
	depth := max(minDepth, 2*batch) // one batch is in flight, another fills
	l := &sendQueues{queues: make([]chan outgoingEvent, n), room: make(chan struct{}, n*depth), load: make([]int, n),
		traces: map[string]*traceQueue{}}
	for i := range l.queues {
		l.queues[i] = make(chan outgoingEvent, n*depth) // capacity for all events: enqueueEvent never blocks on it
	}
	return l
}

// enqueueEvent appends an event. It blocks while too many events are in flight.
func (l *sendQueues) enqueueEvent(ctx context.Context, o outgoingEvent) error {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.queues[l.assignQueue(o.trace)] <- o
	return nil
}

// closeQueues closes the queues: enqueueEvent must not be called again.
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

// takeEvents waits for an event in a queue and returns it with those that follow it, up to most. It returns nil when the
// queue is closed and empty.
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

// finishEvent records that an event taken from a queue is no longer in flight.
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
