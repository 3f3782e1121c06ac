package witness

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
)

func TestLane(t *testing.T) {
	now := testStart
	clock := func() time.Time { return now }
	l := newBreaker("x", make(chan struct{}, 2))
	var calls []call
	enter := func(want bool) {
		t.Helper()
		c, ok := l.acquireSlot(t.Context(), clock)
		if ok != want {
			t.Fatalf("at %v: got %v", now.Sub(testStart), ok)
		}
		if ok {
			calls = append(calls, c)
		}
	}
	leave := func(how result, wait time.Duration) {
		c := calls[0]
		calls = calls[1:]
		l.releaseSlot(c, endedSubmission{of: "log.example", known: true, outcome: outcome{result: how, wait: wait}}, now)
	}
	enter(true)
	enter(true)
	leave(unwell, 0)
	leave(unwell, 0) // concurrent failures count once
	if l.failures != 1 || !l.isResting(now) {
		t.Errorf("%d failures", l.failures)
	}
	rest := l.nextAttempt(now).Sub(now)
	if rest < firstRest*3/4 || rest > firstRest*5/4 {
		t.Errorf("rests %v", rest)
	}
	enter(false)
	now = now.Add(rest)
	enter(true)  // the first call
	enter(false) // the others wait for its result
	leave(gone, 0)
	enter(true)
	leave(unwell, 0)
	if longer := l.nextAttempt(now).Sub(now); longer < 2*firstRest*3/4 || l.failures != 2 {
		t.Errorf("rests %v after %d failures", longer, l.failures)
	}
	for range 20 {
		now = l.nextAttempt(now)
		enter(true)
		leave(unwell, 0)
	}
	if longest := l.nextAttempt(now).Sub(now); longest > longRest*5/4 {
		t.Errorf("rests %v", longest)
	}
	now = l.nextAttempt(now)
	enter(true)
	leave(refused, 0) // an answer of the protocol: the witness is well
	if l.failures != 0 || l.isResting(now) {
		t.Errorf("%d failures", l.failures)
	}
	enter(true)
	leave(unwell, 3*time.Minute)
	if rest := l.nextAttempt(now).Sub(now); rest != 3*time.Minute {
		t.Errorf("asked to wait, rests %v", rest)
	}
	now = l.nextAttempt(now)
	enter(true)
	leave(unwell, 1000*time.Hour)
	if rest := l.nextAttempt(now).Sub(now); rest > longRest {
		t.Errorf("asked to wait for ever, rests %v", rest)
	}
}

// asked is a completed request of a lane, about a log that the witness has cosigned before or not.
func (l *breaker) complete(t *testing.T, log int, known bool, how outcome, now time.Time) healthChange {
	t.Helper()
	l.slots <- struct{}{}
	c, _ := l.lane.enter(t.Context())
	_, change := l.releaseSlot(c, endedSubmission{of: id.Origin(fmt.Sprint("log.example/", log)), known: known, outcome: how}, now)
	return change
}

// The witness is paused only after failures for several different logs in a row, and only logs that it has cosigned
// before count.
func TestFailuresOfLogs(t *testing.T) {
	now := testStart
	bad, good := outcome{result: failed, cause: failureCause{status: 500}}, outcome{result: cosigned}
	for name, row := range map[string]struct {
		logs  []int // logs for which it fails; 0: a log is cosigned
		known bool
		rests bool
	}{
		"one log":                     {[]int{1, 1, 1, 1, 1}, true, false},
		"two logs":                    {[]int{1, 2, 1, 2, 1, 2}, true, false},
		"three logs":                  {[]int{1, 2, 3}, true, true},
		"three logs, not in a row":    {[]int{1, 2, 0, 3, 4, 0, 5}, true, false},
		"many that it never cosigned": {[]int{1, 2, 3, 4, 5, 6, 7, 8}, false, false},
	} {
		l := newBreaker("x", make(chan struct{}, 1))
		for _, log := range row.logs {
			answer := bad
			if log == 0 {
				answer = good
			}
			l.complete(t, log, row.known, answer, now)
		}
		if got := l.isResting(now); got != row.rests {
			t.Errorf("%s: rests: %v", name, got)
		}
	}
}

// The operator is notified when a witness starts to fail, with the class of the failure, and when it has recovered. A
// witness that alternates is reported once in a while; one that keeps failing is always reported.
func TestNewsOfAWitness(t *testing.T) {
	l, now := newBreaker("x", make(chan struct{}, 1)), testStart
	down := outcome{result: unwell, cause: failureCause{class: egress.ClassDNS}}
	up := outcome{result: cosigned}
	for i, row := range []struct {
		after  time.Duration
		answer outcome
		want   turn
	}{
		{0, up, unchanged},
		{time.Second, down, turnedUnwell},
		{time.Minute, down, unchanged},
		{time.Hour, down, unchanged},
		{time.Second, outcome{result: gone}, unchanged},
		{time.Second, up, turnedWell},
		{time.Second, up, unchanged},
		{time.Second, down, turnedUnwell}, // the last report was more than ten minutes ago
		{time.Second, up, turnedWell},
		{time.Second, down, unchanged},
		{time.Second, up, unchanged},
		{time.Second, down, unchanged},
		{reportInterval, down, turnedUnwell}, // it keeps failing
		{time.Second, up, turnedWell},
	} {
		now = now.Add(row.after)
		got := l.complete(t, 1, true, row.answer, now)
		if got.turned != row.want || row.want == turnedUnwell && got.cause != down.cause {
			t.Errorf("step %d: got %+v, want %v", i, got, row.want)
		}
		if i == 5 && got.after != time.Minute+time.Hour+2*time.Second {
			t.Errorf("it was down for %v", got.after)
		}
	}
}

// A busy witness is paused for other logs only if it had nothing else to do.
func TestBusyWitness(t *testing.T) {
	l := newBreaker("x", make(chan struct{}, 2))
	clock := func() time.Time { return testStart }
	leave := func(c call, how outcome) result {
		got, _ := l.releaseSlot(c, endedSubmission{of: "log.example", known: true, outcome: how}, testStart)
		return got.result
	}
	one, _ := l.acquireSlot(t.Context(), clock)
	two, _ := l.acquireSlot(t.Context(), clock)
	for _, c := range []call{one, two} {
		if got := leave(c, outcome{result: busy}); got != busy || l.isResting(testStart) {
			t.Errorf("one of two calls: got %s, rests %v", got, l.isResting(testStart))
		}
	}
	alone, _ := l.acquireSlot(t.Context(), clock)
	if got := leave(alone, outcome{result: busy}); got != unwell || !l.isResting(testStart) {
		t.Errorf("a lone call: got %s, rests %v", got, l.isResting(testStart))
	}
}
