package witness

import "time"

// retryTimes are the times of the next rounds of a ledger that does not move. A zero time means no round.
type retryTimes struct {
	behind time.Time // for a witness that lacks the latest checkpoint
	paused time.Time // for a witness that rejected the ledger
}

// combineEarliest returns the earlier of both times, for each of the two fields.
func (r retryTimes) combineEarliest(other retryTimes) retryTimes {
	return retryTimes{earlierTime(r.behind, other.behind), earlierTime(r.paused, other.paused)}
}

// earlierTime returns the earlier of two times, ignoring a zero time.
func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// laterTime returns the later of two times.
func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// dueHeap orders entries by due.
type dueHeap []*queuedLedger

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}
func (h *dueHeap) Push(x any) { e := x.(*queuedLedger); e.position = len(*h); *h = append(*h, e) }
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last], e.position = nil, -1
	*h = (*h)[:last]
	return e
}
