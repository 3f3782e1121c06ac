package witness

import (
	"context"
	"slices"
	"sync"
)

// growAfter is the number of responses in a row after which the limit grows by one.
const growAfter = 16

// lane limits the calls in flight to one witness. If the witness is busy, the limit is halved, down to one. It grows
// again with responses. Callers are admitted in the order in which they call enter. The methods may be called
// concurrently.
type lane struct {
	mu       sync.Mutex
	limit    int // of calls in flight
	most     int // the largest limit
	inFlight int
	started  uint64 // number of calls so far
	lowered  uint64 // the value of begun when the limit was last lowered
	answered int    // answers since the limit last changed
	waiting  []chan struct{}
}

// call is one call in a lane.
type call struct {
	number uint64 // the value of begun, this call included
	alone  bool   // no other call was in flight when it began
}

// enter waits until the call may begin. It returns false if ctx ends first. If it returns true, the caller must call
// leave.
func (l *lane) enter(ctx context.Context) (call, bool) {
	l.mu.Lock()
	if l.inFlight < l.limit && len(l.waiting) == 0 {
		defer l.mu.Unlock()
		return l.begin(), true
	}
	granted := make(chan struct{})
	l.waiting = append(l.waiting, granted)
	l.mu.Unlock()
	select {
	case <-granted:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, granted); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return call{}, false
	}
	l.inFlight-- // admit has counted it already
	return l.begin(), true
}

// begin counts a call. The caller holds mu.
func (l *lane) begin() call {
	l.inFlight++
	l.started++
	return call{number: l.started, alone: l.inFlight == 1}
}

// leave ends a call and adapts the limit to its result. It reports whether no other call was in flight at the same
// time.
func (l *lane) leave(c call, r result) (alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	alone = c.alone && c.number == l.started
	l.inFlight--
	switch {
	case r == busy:
		l.answered = 0
		if c.number > l.lowered { // calls that were in flight together count as one
			l.limit, l.lowered = max(1, l.limit/2), l.started
		}
	case r == gone || r == unwell:
	case l.limit < l.most:
		if l.answered++; l.answered >= growAfter {
			l.limit, l.answered = l.limit+1, 0
		}
	}
	l.admit()
	return alone
}

// admit lets waiting callers begin. The caller holds mu.
func (l *lane) admit() {
	for len(l.waiting) > 0 && l.inFlight < l.limit {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.inFlight++ // until the caller begins
	}
}
