package witness

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
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
}

func newLane(label string, slots chan struct{}) *lane { return &lane{label: label, slots: slots} }

// enter waits for a slot and reports whether the witness may be asked now, and how
// often an ask may try. After true the caller calls leave.
func (l *lane) enter(ctx context.Context, now func() time.Time) (tries int, ok bool) {
	if l.resting(now()) {
		return 0, false
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.failures == 0:
		return maxTries, true
	case now().Before(l.until) || l.probing:
		<-l.slots
		return 0, false
	}
	l.probing = true
	return maxTries, true
}

func (l *lane) resting(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures > 0 && (now.Before(l.until) || l.probing)
}

// leave gives the slot back and notes how the witness was. atLeast is the rest
// that it asked for.
func (l *lane) leave(how result, now time.Time, atLeast time.Duration) {
	<-l.slots
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probing = false
	switch how {
	case gone: // nothing is known of it
		return
	case unwell:
	default:
		l.failures = 0
		return
	}
	if l.failures == 0 || !now.Before(l.until) { // asks that failed together are one failure
		l.failures++
	}
	l.until = now.Add(max(jittered(backoff(firstRest, longRest, l.failures)), min(atLeast, longRest)))
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
