package trust

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// MaxAhead is how far a cosignature's time may be ahead of the reader's clock. A later
// time shows that one of the two clocks is wrong, so the cosignature proves what its
// witness saw, but not when.
const MaxAhead = 5 * time.Minute

// IsAhead reports whether a cosignature's time is too far in the future to be used.
func IsAhead(cosigned, now id.Instant) bool {
	return cosigned.Time().Sub(now.Time()) > MaxAhead
}

// Times are the times that the cosignatures of one or several checkpoints prove under a
// policy, whichever minority of witnesses has a wrong clock or lies.
type Times struct {
	// By is the earliest time by which a quorum had cosigned: the head existed then.
	By id.Instant
	// Since is the latest time since which a quorum has cosigned: a view was this
	// fresh then. It is never after By if each witness of a minimal quorum cosigned once.
	Since id.Instant
	// Known reports whether there is a quorum at all. If not, By and Since are zero.
	Known bool
	// Ahead are the cosignatures from the future. They do not count for By and Since.
	Ahead []Cosignature
}

// Times returns the times that cosignatures prove at the time now. The result is not
// Known if the quorum is None, or is not reached without the cosignatures from the
// future.
func (p *Policy) Times(cosignatures []Cosignature, now id.Instant) Times {
	var t Times
	var usable []Cosignature
	for _, c := range cosignatures {
		if IsAhead(c.Time, now) {
			t.Ahead = append(t.Ahead, c)
		} else {
			usable = append(usable, c)
		}
	}
	if p.Quorum == None || !p.Reached(usable) {
		return t
	}
	slices.SortStableFunc(usable, func(a, b Cosignature) int { return cmp.Compare(a.Time, b.Time) })
	t.Known, t.By = true, p.quorumTime(usable)
	slices.Reverse(usable)
	t.Since = p.quorumTime(usable)
	return t
}

// quorumTime returns the time of the cosignature that completes the quorum. All of them
// are a quorum.
func (p *Policy) quorumTime(ordered []Cosignature) id.Instant {
	seen := make(map[tlog.WitnessKey]bool, len(ordered))
	for _, c := range ordered {
		seen[c.Witness.Key] = true
		if p.Quorate(func(k tlog.WitnessKey) bool { return seen[k] }) {
			return c.Time
		}
	}
	return 0 // not reached
}
