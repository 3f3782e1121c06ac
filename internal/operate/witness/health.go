package witness

import "time"

// health is the state of a witness across all its ledgers, for the operator.
type health struct {
	called   time.Time // time of the last call; zero if there was none in this process
	since    time.Time // time of the first failure in a row; zero if the witness is healthy
	reported time.Time // time of the last log line about failures; zero if there was none
	logged   bool      // the current failure was logged, so its end is logged too
}

// healthChange is a change to be logged for the operator. The zero value means no change.
type healthChange struct {
	turned turn
	cause  failureCause  // for turnedUnwell
	after  time.Duration // how long the witness was unwell, for turnedWell
}

type turn int

const (
	unchanged turn = iota
	turnedUnwell
	turnedWell
)

// reportInterval is the interval in which a witness that repeatedly fails and recovers is logged once.
const reportInterval = 10 * time.Minute

// noteFailure records a failed call. A witness that was logged less than reportInterval ago is logged again only if
// it still fails after that time.
func (h *health) noteFailure(t failureCause, now time.Time) healthChange {
	h.called = now
	if h.since.IsZero() {
		h.since, h.logged = now, false
	}
	if h.logged || !h.reported.IsZero() && now.Sub(h.reported) < reportInterval {
		return healthChange{}
	}
	h.logged, h.reported = true, now
	return healthChange{turned: turnedUnwell, cause: t}
}

// noteSuccess records a call with a response.
func (h *health) noteSuccess(now time.Time) healthChange {
	h.called = now
	since := h.since
	if h.since = (time.Time{}); since.IsZero() || !h.logged {
		return healthChange{}
	}
	return healthChange{turned: turnedWell, after: now.Sub(since)}
}

// lastFailedCall returns the time of the last call, and reports whether it failed.
func (l *breaker) lastFailedCall() (called time.Time, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health.called, l.failures > 0
}
