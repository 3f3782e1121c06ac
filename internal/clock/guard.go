// Package clock provides the trusted time of the service. A Guard compares the machine's wall clock with the time that
// has elapsed, and stops trusting the wall clock if the two differ too much.
//
// Invariants:
//
//   - Guard.Now returns trusted time. While the wall clock is not trusted, time continues from the last trusted reading, so
//     nothing expires because of a step.
//   - The guard accepts corrections of the wall clock within a range that is Bound wide, whether there is one step or many.
//     A used part of the range becomes available again evenly within Refill, and so more slowly than time passes: trusted
//     time is never more than Bound behind an earlier trusted time.
//   - A suspended machine is not a step: its sleep counts as elapsed time.
//   - A clock that is held (not trusted) is trusted again only once it is right, or when the operator accepts it
//     (Guard.Accept).
package clock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Bound is the width of the range in which the wall clock may be corrected. For example, 4 s forward and 4 s back
	// use 4 s of it. After that, 1 s further back is allowed, or 5 s forward.
	Bound = 5 * time.Second
	// Refill is the time in which a fully used Bound becomes available again, evenly: 1 s in 12 minutes.
	Refill = time.Hour
)

// near is the distance between the wall clock and the expected time that needs no closer look. Small corrections cannot
// add up, because the accepted pair does not move with them.
const near = 100 * time.Millisecond

// Guard provides trusted time. Its methods may be called concurrently.
type Guard struct {
	source Source
	offset atomic.Int64         // wall - steady of the accepted pair, in nanoseconds
	hold   atomic.Pointer[hold] // nil while the wall clock is trusted

	mu       sync.Mutex
	accepted pair
	below    time.Duration // the accepted pair minus the lowest recent correction, at least 0
	above    time.Duration // the highest recent correction minus the accepted pair, at least 0
	rangeAt  time.Duration // the elapsed time at which below and above were computed
}

// pair is a trusted wall clock time and the elapsed time at that moment.
type pair struct {
	wall    time.Time
	elapsed time.Duration
}

// hold is the reason why the wall clock is not trusted, and the range around the continued time in which it is trusted
// again.
type hold struct {
	reason        string
	behind, ahead time.Duration // both 0 after a step: then only Bound counts
}

func (h *hold) coversOffset(offset time.Duration) bool {
	return h != nil && h.ahead > 0 && -h.behind <= offset && offset <= h.ahead
}

// Start is what is known about the time when a guard starts.
type Start struct {
	Newest time.Time     // latest time known to have been trusted; zero if unknown
	MaxGap time.Duration // how much later than Newest the start may be; if zero, any time
	Accept bool          // the operator has accepted the clock
}

// New returns a guard that trusts the clock of source, unless Start rules out its time. In that case, the clock is held
// from the beginning, and time continues from Newest.
func New(source Source, s Start) *Guard {
	g := &Guard{source: source}
	r, elapsed := g.readSource()
	g.acceptReading(r, elapsed)
	g.rangeAt = elapsed
	if s.Newest.IsZero() || s.Accept {
		return g
	}
	gap := s.MaxGap
	if gap == 0 {
		gap = 1<<63 - 1
	}
	late := r.Wall.Sub(s.Newest)
	g.above = max(0, -late) // counts towards Bound for later steps back
	if late < -Bound || late > gap {
		g.accepted.wall, g.above = s.Newest.Round(0), 0
		g.hold.Store(&hold{behind: Bound, ahead: gap, reason: fmt.Sprintf(
			"the clock shows %s, but the service has already trusted %s", formatTime(r.Wall), formatTime(s.Newest))})
	}
	return g
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Now returns trusted time.
func (g *Guard) Now() time.Time {
	r := g.source.Read()
	if distance := r.offsetNanos() - g.offset.Load(); -int64(near) < distance && distance < int64(near) && g.hold.Load() == nil {
		return r.Wall
	}
	return g.compareClocks().Trusted
}

// Status is a snapshot of a guard.
type Status struct {
	Trusted time.Time     // the time that the service uses
	Wall    time.Time     // the machine's clock
	Offset  time.Duration // Wall minus the expected time
	Held    string        // why Wall is not trusted; "" if it is trusted
}

// Status compares the clocks and returns the result.
func (g *Guard) Status() Status { return g.compareClocks() }

// HeldReason returns why the wall clock is not trusted, or "" if it is.
func (g *Guard) HeldReason() string {
	g.Now()
	if h := g.hold.Load(); h != nil {
		return h.reason
	}
	return ""
}

// Check returns a Refusal if the wall clock is not trusted.
func (g *Guard) Check() error {
	if reason := g.HeldReason(); reason != "" {
		return Refusal(reason)
	}
	return nil
}

// Accept trusts the wall clock as it is, on behalf of the operator.
func (g *Guard) Accept() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, elapsed := g.readSource()
	g.acceptReading(r, elapsed)
	g.below, g.above = 0, 0
	return Status{Trusted: r.Wall, Wall: r.Wall}
}

// compareClocks compares the wall clock with the expected time, and holds it, trusts it again or accepts a correction.
func (g *Guard) compareClocks() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, elapsed := g.readSource()
	expected := g.accepted.wall.Add(elapsed - g.accepted.elapsed)
	s := Status{Trusted: expected, Wall: r.Wall, Offset: r.Wall.Round(0).Sub(expected)}
	h, distance := g.hold.Load(), max(s.Offset, -s.Offset)
	switch {
	case h == nil && distance < near: // the accepted pair does not move, so small corrections cannot add up
		g.offset.Store(r.offsetNanos())
		s.Trusted = r.Wall
	case h.coversOffset(s.Offset):
		g.acceptReading(r, elapsed)
		g.above, g.rangeAt = max(0, -s.Offset), elapsed
		s.Trusted = r.Wall
	case g.allowsCorrection(s.Offset, elapsed):
		g.acceptReading(r, elapsed)
		g.below, g.above = max(0, g.below+s.Offset), max(0, g.above-s.Offset)
		s.Trusted = r.Wall
	case h == nil:
		h = &hold{reason: fmt.Sprintf("the clock moved by %v to %s while %s was expected",
			s.Offset.Round(time.Millisecond), formatTime(r.Wall), formatTime(expected))}
		g.hold.Store(h)
		s.Held = h.reason
	default:
		s.Held = h.reason
	}
	return s
}

// allowsCorrection reports whether the wall clock may move by offset: whether the range of recent corrections stays
// within Bound. A correction that undoes an earlier one stays within the range that the earlier one has used.
func (g *Guard) allowsCorrection(offset, elapsed time.Duration) bool {
	refilled := time.Duration(float64(Bound) * float64(min(elapsed-g.rangeAt, Refill)) / float64(Refill))
	g.below, g.above, g.rangeAt = max(0, g.below-refilled), max(0, g.above-refilled), elapsed
	return g.below+offset <= Bound && g.above-offset <= Bound
}

func (g *Guard) acceptReading(r Reading, elapsed time.Duration) {
	g.accepted = pair{wall: r.Wall.Round(0), elapsed: elapsed}
	g.offset.Store(r.offsetNanos())
	g.hold.Store(nil)
}

// pairing bounds the time between the readings of the two clocks: if the process were stopped between them, it would
// see a step. pairTries bounds the attempts.
const (
	pairing   = 20 * time.Millisecond
	pairTries = 16
)

// readSource reads both clocks at nearly the same moment.
func (g *Guard) readSource() (r Reading, elapsed time.Duration) {
	for range pairTries {
		before := g.source.Elapsed()
		r = g.source.Read()
		elapsed = g.source.Elapsed()
		if elapsed-before <= pairing {
			break
		}
	}
	return r, elapsed
}
