package admission

import (
	"sync"
	"time"
)

// Times of a connection.
const (
	patience    = 500 * time.Millisecond // what a deadline that has passed is moved by
	longestLate = 30 * time.Second       // what counts of the time it was overlooked
	linger      = 2 * time.Second        // for which a connection that is at its end is read
	lingerBytes = 16 << 20               // and how much of it
)

// deadline is a deadline of a connection. It is there to cut off another end that is
// slow, but that it has passed does not prove that: a process that did not run for a
// while (a machine that stood still, or has too much to do) and a handler that had to
// wait for its turn find it passed, and what was sent in time in the kernel. So it is
// moved once: by as long as nobody noticed that it had passed, and by patience.
type deadline struct {
	set func(time.Time) error

	mu sync.Mutex
	at time.Time // zero when it is not to be moved
}

// put sets the deadline. One that lies far back is http.Server's way to end a read.
func (d *deadline) put(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at = t; !t.IsZero() && time.Since(t) > time.Hour {
		d.at = time.Time{}
	}
	return d.set(t)
}

// move moves the deadline, which was found passed, and reports whether to try again.
func (d *deadline) move() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() {
		return false
	}
	late := min(max(0, time.Since(d.at)), longestLate)
	d.at = time.Time{}
	return d.set(time.Now().Add(late+patience)) == nil
}
