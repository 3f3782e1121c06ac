package web

import (
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// lookedAt is the number of latest events that the activity of a log counts.
const lookedAt = 500

// activity is the number of events in each hour or day.
type activity struct {
	Unit   string // hour or day
	Events int
	Most   int // maximum of one unit
	From   string
	Bars   []bar
	Width  int // of the chart
}

// bar is the events of one hour or day, with its position in the chart.
type bar struct {
	Begin        string // RFC 3339 in UTC
	Count        int
	X, Y, Height int
}

// Dimensions of the activity chart, in its own units.
const (
	barStep   = 10 // from one bar to the next
	barHeight = 60 // of the largest bar
	maxHours  = 48 // of a chart of hours
	maxDays   = 60 // of a chart of days; older ones are omitted
)

// received are the times of receipt of the latest events of a tree, 0 for events whose records are not disclosed.
type received struct {
	origin id.Origin
	size   id.Index // of the tree
	times  []id.Instant
}

// readReceived returns the times of receipt of a head's latest events. It reads only those that are not in the cached
// home page of the same log.
func (s *Server) readReceived(r *request, head verify.Head, kept *keptLog) (received, error) {
	now := received{origin: head.Origin, size: head.TreeSize}
	begin := now.size - min(now.size, lookedAt)
	if kept != nil && kept.received.origin == now.origin && kept.received.size <= now.size {
		if begin < kept.received.size {
			now.times, begin = kept.received.times, kept.received.size
		}
	}
	if begin == now.size {
		return now, nil
	}
	newer, err := s.log.Received(r.Context(), r.tenant, id.Range{Begin: begin, End: now.size})
	now.times = slices.Concat(now.times, newer)
	now.times = now.times[max(0, len(now.times)-lookedAt):]
	return now, err
}

// newActivity counts events by their times of receipt, which must not decrease. It returns nil if there are none. It
// counts by the hour if the times span up to two days, and otherwise by the day.
func newActivity(times []id.Instant) *activity {
	received := make([]id.Instant, 0, len(times))
	for _, at := range times {
		if at != 0 {
			received = append(received, at)
		}
	}
	if len(received) == 0 {
		return nil
	}
	newest := received[len(received)-1].Time()
	unit, name := time.Hour, "hour"
	if newest.Sub(received[0].Time()) >= maxHours*time.Hour {
		unit, name = 24*time.Hour, "day"
	}
	last := newest.Truncate(unit)
	first := received[0].Time().Truncate(unit)
	if oldest := last.Add(-(maxDays - 1) * unit); first.Before(oldest) {
		first = oldest
	}
	a := &activity{Unit: name, From: first.Format(time.RFC3339)}
	for at := first; !at.After(last); at = at.Add(unit) {
		a.Bars = append(a.Bars, bar{Begin: at.Format(time.RFC3339), X: barStep * len(a.Bars)})
	}
	a.Width = barStep * len(a.Bars)
	for _, at := range received {
		if place := int(at.Time().Sub(first) / unit); !at.Time().Before(first) && place < len(a.Bars) {
			a.Bars[place].Count++
			a.Events++
			a.Most = max(a.Most, a.Bars[place].Count)
		}
	}
	a.draw()
	return a
}

// draw computes the heights of the bars. A bar with events has a positive height.
func (a *activity) draw() {
	for i := range a.Bars {
		b := &a.Bars[i]
		if b.Count > 0 {
			b.Height = max(1, barHeight*b.Count/a.Most)
		}
		b.Y = barHeight - b.Height
	}
}
