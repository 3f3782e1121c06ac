package clock

import "time"

// Reading is one reading of the clocks that are cheap to read.
type Reading struct {
	Wall   time.Time
	Steady time.Duration // since a fixed moment; never stepped; may stop while the machine sleeps
}

// offsetNanos changes only if the wall clock steps or the machine sleeps.
func (r Reading) offsetNanos() int64 { return r.Wall.UnixNano() - int64(r.Steady) }

// Source provides the clocks of one machine. Its methods may be called concurrently.
type Source interface {
	// Read returns the wall clock and a steady clock.
	Read() Reading
	// Elapsed returns the time since a fixed moment, including the time that the machine slept.
	Elapsed() time.Duration
}

// Machine returns the clocks of this machine. Elapsed is CLOCK_BOOTTIME on Linux. Elsewhere it is Go's monotonic clock,
// which on some systems stops while the machine sleeps; there, a sleep looks like a step.
func Machine() Source { return machine{began: time.Now()} }

type machine struct{ began time.Time }

// Read reads both clocks with one system call.
func (m machine) Read() Reading {
	now := time.Now()
	return Reading{Wall: now, Steady: now.Sub(m.began)}
}
