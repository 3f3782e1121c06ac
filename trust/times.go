package trust

import (
	"slices"
	"sort"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// MaxAhead is how far the time of a cosignature may be ahead of the reader's clock. A later time
// means that one of the two clocks is wrong, so the cosignature proves what the witness saw, but
// not when.
const MaxAhead = 5 * time.Minute

// IsAhead reports whether the time of a cosignature is too far in the future to be used.
func IsAhead(cosigned, now id.Instant) bool {
	return cosigned.Time().Sub(now.Time()) > MaxAhead
}

// Times are the times that the cosignatures of one or more checkpoints prove under a policy, even
// if a minority of the witnesses has wrong clocks or lies.
type Times struct {
	// By is the earliest time by which a quorum had cosigned: the head existed by then.
	By id.Instant
	// Since is the latest time since which a quorum has cosigned: the view was current then. It is
	// never after By if each witness of a minimal quorum cosigned once.
	Since id.Instant
	// Known reports whether there is a quorum. If not, By and Since are zero.
	Known bool
	// Ahead are the cosignatures from the future. They do not count for By and Since.
	Ahead []Cosignature
}

// Times returns the times that cosignatures prove at the time now. The result is not Known if the
// quorum is None, or if the cosignatures that are not from the future do not reach it.
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
	if !p.AsksForWitnesses() || !p.Reached(usable) {
		return t
	}
	sort.SliceStable(usable, func(i, j int) bool { return usable[i].Time < usable[j].Time })
	t.Known, t.By = true, p.quorumTime(usable)
	slices.Reverse(usable)
	t.Since = p.quorumTime(usable)
	return t
}

// quorumTime returns the time of the cosignature that completes the quorum. All cosignatures
// together must reach it.
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
