// Package clock is the one clock of the service: it compares the machine's wall
// clock with the time that has passed, and stops trusting it when the two part.
//
// Invariants:
//
//   - Guard.Now is trusted time. While the wall clock is not trusted, the time goes
//     on from where it was trusted last, so that nothing ends because of a step.
//   - The guard follows corrections of the wall clock within a range that is Bound wide, whether there
//     is one step or many. A used part of the range becomes available again evenly within Refill, and so
//     more slowly than time passes: trusted time is never more than Bound behind an earlier trusted time.
//   - A suspended machine is not a step: the time of its sleep has passed.
//   - A held clock is trusted again by itself once it is right, or when the operator
//     says so (Guard.Accept), and by nothing else.
package clock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Bound is the width of the range in which the wall clock may be corrected. For example, 4 s
	// forward and 4 s back use 4 s of it. After that, 1 s further back is allowed, or 5 s forward.
	Bound = 5 * time.Second
	// Refill is the time in which a used Bound becomes available again, evenly: 1 s in 12 minutes.
	Refill = time.Hour
)

// near is how far the wall clock may lie from the accepted pair without a closer
// look. It is no room to creep in, because the pair stays where it is.
const near = 100 * time.Millisecond

// Guard tells trusted time. Its methods may be called concurrently.
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

// pair is a wall clock that was trusted, and the elapsed time then.
type pair struct {
	wall    time.Time
	elapsed time.Duration
}

// hold is why the wall clock is not trusted, and how far it may lie from the time
// that goes on by itself to be trusted again.
type hold struct {
	reason        string
	behind, ahead time.Duration // 0 for a step: then Bound alone counts
}

func (h *hold) coversOffset(offset time.Duration) bool {
	return h != nil && h.ahead > 0 && -h.behind <= offset && offset <= h.ahead
}

// Start is the knowledge that a guard begins with.
type Start struct {
	Newest time.Time     // the newest time that is known to have been trusted; zero: none is known
	MaxGap time.Duration // how much later than that a start may be; 0: any time
	Accept bool          // the operator says that the clock is right
}

// New returns a guard that trusts the clock of source, unless it shows a time that
// Start rules out: then it is held from the beginning, and time goes on from Newest.
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
			"the clock shows %s, and the service has trusted %s before", formatTime(r.Wall), formatTime(s.Newest))})
	}
	return g
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Now returns trusted time.
func (g *Guard) Now() time.Time {
	r := g.source.Read()
	if away := r.offsetNanos() - g.offset.Load(); -int64(near) < away && away < int64(near) && g.hold.Load() == nil {
		return r.Wall
	}
	return g.compareClocks().Trusted
}

// Status is the state of a guard at one moment.
type Status struct {
	Trusted time.Time     // the time that the service goes by
	Wall    time.Time     // the machine's clock
	Offset  time.Duration // how far Wall is from where it should be
	Held    string        // why Wall is not trusted, "" while it is
}

// Status compares the clocks.
func (g *Guard) Status() Status { return g.compareClocks() }

// HeldReason returns why the wall clock is not trusted, "" while it is.
func (g *Guard) HeldReason() string {
	g.Now()
	if h := g.hold.Load(); h != nil {
		return h.reason
	}
	return ""
}

// Check returns Refusal with the reason while the wall clock is not trusted.
func (g *Guard) Check() error {
	if reason := g.HeldReason(); reason != "" {
		return Refusal(reason)
	}
	return nil
}

// Accept trusts the wall clock as it is, because the operator says so.
func (g *Guard) Accept() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, elapsed := g.readSource()
	g.acceptReading(r, elapsed)
	g.below, g.above = 0, 0
	return Status{Trusted: r.Wall, Wall: r.Wall}
}

// compareClocks holds the wall clock, trusts it again or lets it be corrected.
func (g *Guard) compareClocks() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, elapsed := g.readSource()
	should := g.accepted.wall.Add(elapsed - g.accepted.elapsed)
	s := Status{Trusted: should, Wall: r.Wall, Offset: r.Wall.Round(0).Sub(should)}
	h, away := g.hold.Load(), max(s.Offset, -s.Offset)
	switch {
	case h == nil && away < near: // the pair stays, so that this never adds up
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
			s.Offset.Round(time.Millisecond), formatTime(r.Wall), formatTime(should))}
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

// pairing is how long the two clocks may take to be read, and pairTries how often
// that is tried: a process that is stopped between them would see a step.
const (
	pairing   = 20 * time.Millisecond
	pairTries = 16
)

// readSource returns the time of both clocks at one moment.
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
