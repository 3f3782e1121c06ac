package witness

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// How much is under way at a time.
const (
	serviceAsks = 8  // of one of the service's witnesses
	ownAsks     = 64 // of all organizations' own witnesses together
)

// ownLabel stands for all organizations' own witnesses in metrics.
const ownLabel = "own"

// Back-off of a witness that is not well: what it doubles from and up to.
const (
	firstRest = 5 * time.Second
	longRest  = 10 * time.Minute
)

// severalLogs is how many different logs, all of which the witness has cosigned before,
// have to fail in a row before the failures count for the witness as a whole. A failure
// about a log that it never cosigned says nothing about the others: some witnesses
// answer 500 to a log that they do not know.
const severalLogs = 3

// lane is a witness as all ledgers that ask it see it: how many may ask at a
// time, and when it was last well. After a failure one asks again when the rest
// is over, the others when that one was answered.
type lane struct {
	label string
	slots chan struct{}

	mu       sync.Mutex
	failures int // in a row
	until    time.Time
	probing  bool
	failing  map[id.Origin]struct{} // that failed since the last ask that went well; at most severalLogs
	health   health
}

func newLane(label string, slots chan struct{}) *lane { return &lane{label: label, slots: slots} }

// enter waits for a slot and reports whether the witness may be asked now. After true
// the caller calls leave.
func (l *lane) enter(ctx context.Context, now func() time.Time) bool {
	if l.resting(now()) {
		return false
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.failures == 0:
		return true
	case now().Before(l.until) || l.probing:
		<-l.slots
		return false
	}
	l.probing = true
	return true
}

func (l *lane) resting(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures > 0 && (now.Before(l.until) || l.probing)
}

// asking is what a lane has to know of an ask that ended.
type asking struct {
	of    id.Origin
	known bool // the witness has cosigned the log before
	answered
}

// leave gives the slot back, notes how the witness was, and returns what there is to
// tell about it.
func (l *lane) leave(a asking, now time.Time) news {
	<-l.slots
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probing = false
	switch {
	case a.result == gone, a.result == failed && !a.known: // nothing is known of the witness
		return news{}
	case a.result == unwell, a.result == failed && l.failed(a.of):
		return l.fail(a, now)
	}
	l.failures = 0
	if a.result != failed {
		l.failing = nil
	}
	return l.health.well(now)
}

// failed notes a log that failed and reports whether there were several in a row.
func (l *lane) failed(o id.Origin) bool {
	if l.failing == nil {
		l.failing = make(map[id.Origin]struct{}, severalLogs)
	}
	if len(l.failing) < severalLogs {
		l.failing[o] = struct{}{}
	}
	return len(l.failing) == severalLogs
}

// fail begins a rest of the witness, or prolongs it.
func (l *lane) fail(a asking, now time.Time) news {
	if l.failures == 0 || !now.Before(l.until) { // asks that failed together are one failure
		l.failures++
	}
	l.until = now.Add(max(jittered(backoff(firstRest, longRest, l.failures)), min(a.wait, longRest)))
	return l.health.unwell(a.trouble, now)
}

// wake ends a rest, so that somebody asks at once.
func (l *lane) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Time{}
}

// rest returns when the witness may be asked again; not before now.
func (l *lane) rest(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.Before(now) {
		return now
	}
	return l.until
}

// backoff doubles from first up to most with each failure after the first.
func backoff(first, most time.Duration, failures int) time.Duration {
	d := first
	for i := 1; i < failures && d < most; i++ {
		d *= 2
	}
	return min(d, most)
}

// jittered returns three quarters to five quarters of d, so that those who were
// refused together don't come back together.
func jittered(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}
