package witness

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Limits of concurrent requests.
const (
	serviceCalls = 8  // to one witness of the service
	ownCalls     = 64 // to the own witnesses of all organizations together
)

// ownLabel is the metric label of the own witnesses of all organizations.
const ownLabel = "own"

// Backoff of a witness that does not respond: it doubles from firstRest up to longRest.
const (
	firstRest = 5 * time.Second
	longRest  = 10 * time.Minute
)

// severalLogs is the number of logs whose submissions must fail in a row before the failures count for the witness as
// a whole. Only logs that the witness cosigned before count, because some witnesses respond with 500 for an unknown
// log.
const severalLogs = 3

// breaker is the circuit breaker of one witness. It is shared by all ledgers that use the witness, and limits the
// concurrent requests. After a failure, the witness gets no requests during a pause. After the pause, one request
// probes the witness, and the others wait for its response.
type breaker struct {
	label string
	lane  lane
	slots chan struct{} // of all witnesses that share them

	mu       sync.Mutex
	failures int // in a row
	until    time.Time
	probing  bool
	failing  map[id.Origin]struct{} // logs that failed since the last success; at most severalLogs
	health   health
}

func newBreaker(label string, slots chan struct{}) *breaker {
	return &breaker{label: label, slots: slots, lane: lane{limit: cap(slots), most: cap(slots)}}
}

// acquireSlot waits for a slot, and reports whether the witness may be called now. If it returns true, the caller
// must call releaseSlot.
func (l *breaker) acquireSlot(ctx context.Context, now func() time.Time) (c call, ok bool) {
	if l.isResting(now()) {
		return c, false
	}
	c, ok = l.lane.enter(ctx)
	if !ok {
		return c, false
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		l.lane.leave(c, gone)
		return c, false
	}
	if !l.mayCall(now()) {
		<-l.slots
		l.lane.leave(c, gone)
		return c, false
	}
	return c, true
}

// mayCall reports whether the witness may be called. If it was failing, the caller's request is the probe.
func (l *breaker) mayCall(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.failures == 0:
		return true
	case now.Before(l.until) || l.probing:
		return false
	}
	l.probing = true
	return true
}

func (l *breaker) isResting(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures > 0 && (now.Before(l.until) || l.probing)
}

// endedSubmission is the part of a finished submission that the breaker needs.
type endedSubmission struct {
	of    id.Origin
	known bool // the witness has cosigned the log before
	outcome
}

// releaseSlot releases the slot and records the health of the witness. It returns the outcome and the change to log.
// A witness that is busy although no other call was in flight counts as unwell.
func (l *breaker) releaseSlot(c call, a endedSubmission, now time.Time) (outcome, healthChange) {
	<-l.slots
	if alone := l.lane.leave(c, a.result); alone && a.result == busy {
		a.result = unwell
	}
	return a.outcome, l.noteOutcome(a, now)
}

func (l *breaker) noteOutcome(a endedSubmission, now time.Time) healthChange {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probing = false
	switch {
	case a.result == gone, a.result == busy, a.result == failed && !a.known: // the outcome says nothing about the witness's health
		return healthChange{}
	case a.result == unwell, a.result == failed && l.noteFailedLog(a.of):
		return l.beginRest(a, now)
	}
	l.failures = 0
	if a.result != failed {
		l.failing = nil
	}
	return l.health.noteSuccess(now)
}

// noteFailedLog records a failed log, and reports whether severalLogs have failed in a row.
func (l *breaker) noteFailedLog(o id.Origin) bool {
	if l.failing == nil {
		l.failing = make(map[id.Origin]struct{}, severalLogs)
	}
	if len(l.failing) < severalLogs {
		l.failing[o] = struct{}{}
	}
	return len(l.failing) == severalLogs
}

// beginRest starts or extends a pause of the witness.
func (l *breaker) beginRest(a endedSubmission, now time.Time) healthChange {
	if l.failures == 0 || !now.Before(l.until) { // concurrent failures count as one
		l.failures++
	}
	l.until = now.Add(max(withJitter(exponentialBackoff(firstRest, longRest, l.failures)), min(a.wait, longRest)))
	return l.health.noteFailure(a.cause, now)
}

// endRestEarly ends a pause, so that the next request is sent at once.
func (l *breaker) endRestEarly() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Time{}
}

// nextAttempt returns when the witness may be called again, not before now.
func (l *breaker) nextAttempt(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return laterTime(now, l.until)
}

// exponentialBackoff doubles first with each failure after the first one, up to most.
func exponentialBackoff(first, most time.Duration, failures int) time.Duration {
	d := first
	for i := 1; i < failures && d < most; i++ {
		d *= 2
	}
	return min(d, most)
}

// withJitter returns a random duration from three quarters to five quarters of d, so that requests that failed
// together are not repeated together.
func withJitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}
