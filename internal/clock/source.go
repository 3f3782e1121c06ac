package clock

import "time"

// Reading is the time of the clocks that are cheap to read, at one moment.
type Reading struct {
	Wall   time.Time
	Steady time.Duration // since some moment, never corrected in steps; may stand still while the machine sleeps
}

// offsetNanos changes only by a step and by the machine's sleep.
func (r Reading) offsetNanos() int64 { return r.Wall.UnixNano() - int64(r.Steady) }

// Source is the clocks of one machine. Its methods may be called concurrently.
type Source interface {
	// Read returns the wall clock beside a steady one.
	Read() Reading
	// Elapsed returns the time since some moment, with that in which the machine slept.
	Elapsed() time.Duration
}

// Machine returns the clocks of this machine. Elapsed is CLOCK_BOOTTIME on Linux.
// Elsewhere it is Go's monotonic clock, which stands still on some systems while the
// machine sleeps: there the sleep is a step.
func Machine() Source { return machine{began: time.Now()} }

type machine struct{ began time.Time }

// Read reads both clocks with one call.
func (m machine) Read() Reading {
	now := time.Now()
	return Reading{Wall: now, Steady: now.Sub(m.began)}
}
