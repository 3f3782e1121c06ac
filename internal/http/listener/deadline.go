package listener

import (
	"errors"
	"os"
	"sync"
	"time"
)

// deadline is the deadline of the reads or of the writes of a connection. net/http moves
// deadlines eight times per request, and each move takes a timer of the runtime. So the deadline of the
// network connection is set only if a call in flight must end earlier
// than it would. Setting each deadline takes 5 % more processor time of a log's head (docs/performance.md).
//
// A deadline that has passed does not prove that the peer is slow. The process may have been stopped, or the handler
// may have waited for a processor, while data that was sent in time was in the kernel. So a passed deadline is extended
// once, by the time for which it was overlooked and by a grace period.
//
// After a deadline has ended a write, a connection of crypto/tls fails each further write. So the
// deadline of such writes is exact: each one is set on the network connection, and a call that it
// ended is not repeated.
type deadline struct {
	set   func(time.Time) error // of the network connection
	grace time.Duration         // if zero, never extended
	exact bool                  // the connection is unusable after a deadline has ended a call

	mu       sync.Mutex
	at       time.Time // zero if there is none
	current  time.Time // deadline of the network connection; not after at while a call is in flight
	extended bool      // at must not be extended
	inFlight bool      // a call on the network connection is in flight
}

// maxOverlooked bounds the time for which a deadline counts as overlooked.
const maxOverlooked = 30 * time.Second

// setDeadline sets the deadline. http.Server interrupts a read by a deadline in the distant past, which is not extended.
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
	d.at = t
	if d.inFlight && d.mustApply() {
		return d.apply()
	}
	return nil
}

// mustApply reports whether the deadline must be set on the network connection, because a call would otherwise end too
// late or the deadline is exact.
func (d *deadline) mustApply() bool {
	endsLate := !d.at.IsZero() && (d.current.IsZero() || d.at.Before(d.current))
	return endsLate || d.exact && !d.current.Equal(d.at)
}

// apply sets the deadline on the network connection.
func (d *deadline) apply() error {
	d.current = d.at
	return d.set(d.at)
}

func (d *deadline) hasPassed() bool { return hasPassed(d.at) }

// hasPassed reports whether a deadline has passed. A zero deadline never passes.
func hasPassed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// extendOnce extends a deadline that has passed, and reports whether it did.
func (d *deadline) extendOnce() bool {
	if d.extended {
		return false
	}
	d.extended = true
	overlooked := min(max(0, time.Since(d.at)), maxOverlooked)
	d.at = time.Now().Add(overlooked + d.grace)
	return true
}

// beginCall must precede a call. If it returns an error, for example because the
// deadline has passed, there must be neither a call nor an endCall.
func (d *deadline) beginCall() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mustApply() || d.exact && d.hasPassed() {
		if d.hasPassed() && !d.extendOnce() {
			return os.ErrDeadlineExceeded
		}
		if err := d.apply(); err != nil {
			return err
		}
	}
	d.inFlight = true
	return nil
}

// endCall must follow a call that transferred n bytes in total and ended with err. If again is true, the call ended
// before its deadline and must be repeated. A timeout before the current deadline of the network connection
// is final, because that connection is broken, as a connection
// of crypto/tls is after a handshake that took too long.
func (d *deadline) endCall(n int, err error) (_ error, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	timedOut := errors.Is(err, os.ErrDeadlineExceeded) && hasPassed(d.current)
	if timedOut && !d.exact && (!d.hasPassed() || n == 0 && d.extendOnce()) {
		if err = d.apply(); err == nil {
			return nil, true
		}
	}
	d.inFlight = false
	return err, false
}
