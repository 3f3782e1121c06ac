package witness

import "time"

// health is the state of a witness that all its ledgers share, for the operator.
type health struct {
	asked   time.Time // time of the last call; zero for none in this process
	since   time.Time // time of the first failure in a row; zero when the witness is well
	told    time.Time // time of the last log line about failures; zero for none
	telling bool      // the running failure was logged, so its end is logged too
}

// healthChange is a change to log for the operator. The zero value is no change.
type healthChange struct {
	turned turn
	cause  failureCause  // for turnedUnwell
	after  time.Duration // the time that the witness was unwell, for turnedWell
}

type turn int

const (
	nothing turn = iota
	turnedUnwell
	turnedWell
)

// tellAgain is the time in which a witness that fails and recovers again and again is
// logged once.
const tellAgain = 10 * time.Minute

// noteFailure notes a failed call. A witness that was logged less than tellAgain ago is
// logged again only if it still fails after that time.
func (h *health) noteFailure(t failureCause, now time.Time) healthChange {
	h.asked = now
	if h.since.IsZero() {
		h.since, h.telling = now, false
	}
	if h.telling || !h.told.IsZero() && now.Sub(h.told) < tellAgain {
		return healthChange{}
	}
	h.telling, h.told = true, now
	return healthChange{turned: turnedUnwell, cause: t}
}

// noteSuccess notes an answered call.
func (h *health) noteSuccess(now time.Time) healthChange {
	h.asked = now
	since := h.since
	if h.since = (time.Time{}); since.IsZero() || !h.telling {
		return healthChange{}
	}
	return healthChange{turned: turnedWell, after: now.Sub(since)}
}

// lastFailedCall returns the time of the last call, and whether it failed.
func (l *breaker) lastFailedCall() (asked time.Time, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health.asked, l.failures > 0
}
