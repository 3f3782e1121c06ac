package listener

import (
	"errors"
	"os"
	"sync"
	"time"
)

// deadline is the deadline of the reads or of the writes of a connection. net/http moves
// deadlines eight times a request, and each move costs a timer of the runtime. So the
// connection below is told of a deadline only when a call waits that has to end earlier
// than it would.
//
// A deadline that has passed does not prove that the other end is slow. The process may
// have stood still, or the handler may have waited for a processor, while data that was
// sent in time lay in the kernel. So a deadline with grace is extended once, by the time
// for which it was overlooked and by the grace.
//
// After a write that a deadline ended, a connection of crypto/tls fails each further write. So a
// deadline of such writes is exact: the connection below is told of each one, and no call that was
// ended is made again.
type deadline struct {
	tell  func(time.Time) error // sets the deadline of the connection below
	grace time.Duration         // 0 for no extension
	exact bool                  // the connection below is of no use after a deadline that ended a call

	mu       sync.Mutex
	wanted   time.Time // zero for none
	told     time.Time // deadline of the connection below; not after wanted while a call waits
	extended bool      // wanted MUST NOT be extended
	waiting  bool      // a call is under way below
}

// maxOverlooked bounds the time for which a deadline counts as overlooked.
const maxOverlooked = 30 * time.Second

// setDeadline sets the deadline, and tells the connection below if a call has to end
// earlier. http.Server ends a read by a deadline that is long past: such a deadline is
// not extended.
func (d *deadline) setDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.extended = d.grace == 0 || t.IsZero() || time.Since(t) > time.Hour
	return d.moveDeadline(t)
}

// setFinalDeadline is setDeadline without an extension.
func (d *deadline) setFinalDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.extended = true
	return d.moveDeadline(t)
}

func (d *deadline) moveDeadline(t time.Time) error {
	d.wanted = t
	if d.waiting && d.isToldWrong() {
		return d.tellWanted()
	}
	return nil
}

// endsTooLate reports whether the connection below would end a call after the deadline.
func (d *deadline) endsTooLate() bool {
	return !d.wanted.IsZero() && (d.told.IsZero() || d.wanted.Before(d.told))
}

// isToldWrong reports whether the connection below has to be told of the deadline before or while a call waits.
func (d *deadline) isToldWrong() bool {
	return d.endsTooLate() || d.exact && !d.told.Equal(d.wanted)
}

func (d *deadline) tellWanted() error {
	d.told = d.wanted
	return d.tell(d.wanted)
}

func (d *deadline) hasPassed() bool { return isOver(d.wanted) }

// isOver reports whether a deadline has passed, which one of zero never does.
func isOver(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// extendOnce moves a deadline that has passed, and reports whether it did.
func (d *deadline) extendOnce() bool {
	if d.extended {
		return false
	}
	d.extended = true
	overlooked := min(max(0, time.Since(d.wanted)), maxOverlooked)
	d.wanted = time.Now().Add(overlooked + d.grace)
	return true
}

// beginWaitingCall comes before a call. After an error, for example a time-out because the
// deadline has passed, there is no call and no endCall.
func (d *deadline) beginWaitingCall() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isToldWrong() || d.exact && d.hasPassed() {
		if d.hasPassed() && !d.extendOnce() {
			return os.ErrDeadlineExceeded
		}
		if err := d.tellWanted(); err != nil {
			return err
		}
	}
	d.waiting = true
	return nil
}

// endWaitingCall comes after a call that moved n bytes in all and ended with err. With again
// the call was ended before its deadline and is made once more. A time-out before the deadline
// that the connection below was told is not the end of a call: that connection is broken, as one
// of crypto/tls is after a handshake that took too long.
func (d *deadline) endWaitingCall(n int, err error) (_ error, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	timedOut := errors.Is(err, os.ErrDeadlineExceeded) && isOver(d.told)
	if timedOut && !d.exact && (!d.hasPassed() || n == 0 && d.extendOnce()) {
		if err = d.tellWanted(); err == nil {
			return nil, true
		}
	}
	d.waiting = false
	return err, false
}
