package witness

import "time"

// health is what there is to tell of a witness that all ledgers share: when it was
// asked last, and since when it is not well.
type health struct {
	asked   time.Time // last; zero: not in this process
	since   time.Time // when it turned unwell; zero: it is well
	told    time.Time // when that was told last; zero: never
	telling bool      // that it is unwell was told, so that its end is told too
}

// news is what the operator is told of a witness. The zero value is nothing.
type news struct {
	turned  turn
	trouble trouble       // of unwell
	after   time.Duration // for which it was unwell
}

type turn int

const (
	nothing turn = iota
	turnedUnwell
	turnedWell
)

// tellAgain is the time in which a witness that goes up and down is told of once.
const tellAgain = 10 * time.Minute

// unwell notes that the witness has failed. A witness that was told of a moment ago is
// told of again when it still fails after tellAgain.
func (h *health) unwell(t trouble, now time.Time) news {
	h.asked = now
	if h.since.IsZero() {
		h.since, h.telling = now, false
	}
	if h.telling || !h.told.IsZero() && now.Sub(h.told) < tellAgain {
		return news{}
	}
	h.telling, h.told = true, now
	return news{turned: turnedUnwell, trouble: t}
}

// well notes that the witness has answered.
func (h *health) well(now time.Time) news {
	h.asked = now
	since := h.since
	if h.since = (time.Time{}); since.IsZero() || !h.telling {
		return news{}
	}
	return news{turned: turnedWell, after: now.Sub(since)}
}

// lastFailed returns when the witness was asked last, if it was not well then.
func (l *lane) lastFailed() (asked time.Time, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health.asked, l.failures > 0
}
