package listener

import (
	"sync"
	"time"
)

// deadline is the deadline of the reads or of the writes of a connection.
//
// A deadline that has passed does not prove that the peer is slow. The process may have been stopped, or the handler
// may have waited for a processor, while data that was sent in time was in the kernel. So a passed deadline is extended
// once, by the time for which it was overlooked and by a grace period.
type deadline struct {
	set   func(time.Time) error // of the network connection
	grace time.Duration         // if zero, never extended

	mu       sync.Mutex
	at       time.Time // zero if there is none
	extended bool      // at must not be extended
}

// maxOverlooked bounds the time for which a deadline counts as overlooked.
const maxOverlooked = 30 * time.Second

// setDeadline sets the deadline. http.Server interrupts a read by a deadline in the distant past, which is not extended.
func (d *deadline) setDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.extended = t, d.grace == 0 || t.IsZero() || time.Since(t) > time.Hour
	return d.set(t)
}

// setFinalDeadline is setDeadline without an extension.
func (d *deadline) setFinalDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.extended = t, true
	return d.set(t)
}

// extendOnce extends a deadline that has passed, and reports whether it did.
func (d *deadline) extendOnce() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if overlooked := time.Since(d.at); !d.extended && !d.at.IsZero() && overlooked >= 0 {
		d.extended = true
		d.at = time.Now().Add(min(overlooked, maxOverlooked) + d.grace)
		return d.set(d.at) == nil
	}
	return false
}
