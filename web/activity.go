package web

import (
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// lookedAt is how many of the newest events the activity of a log counts.
const lookedAt = 500

// activity is the number of events in each hour or day.
type activity struct {
	Unit   string // hour or day
	Events int
	Most   int // in one unit
	From   string
	Bars   []bar
	Width  int // of the picture
}

// bar is the events of one hour or day, and its place in the picture.
type bar struct {
	Begin        string // as in RFC 3339, UTC
	Count        int
	X, Y, Height int
}

// The picture of the activity, in its own units.
const (
	barStep   = 10 // from one bar to the next
	barHeight = 60 // of the largest bar
	maxHours  = 48 // of a picture of hours
	maxDays   = 60 // of a picture of days: older ones are left out
)

// received are the times of receipt of the newest events of a tree, 0 for one that does not show its record.
type received struct {
	origin id.Origin
	size   id.Index // of the tree
	times  []id.Instant
}

// readReceived returns the times of the newest events of a head. It reads only those that the kept home of the same log
// does not have.
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

// newActivity counts events by the times of their receipt, which rise. It returns nil for none. Times up to two days
// apart are counted by hours, others by days.
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

// draw gives the bars their heights. A bar with events is never flat.
func (a *activity) draw() {
	for i := range a.Bars {
		b := &a.Bars[i]
		if b.Count > 0 {
			b.Height = max(1, barHeight*b.Count/a.Most)
		}
		b.Y = barHeight - b.Height
	}
}
