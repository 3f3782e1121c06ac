package witness

import "time"

// again is when a ledger is to be asked about again although it does not move; the
// zero times for not at all.
type again struct {
	behind time.Time // for a witness that is to have the newest checkpoint
	paused time.Time // for one that does not want the ledger: nobody waits for it
}

// or returns the earlier times of both.
func (r again) or(other again) again {
	return again{earlier(r.behind, other.behind), earlier(r.paused, other.paused)}
}

// earlier returns the earlier of two times, of which the zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// dueHeap orders entries by due.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *dueHeap) Push(x any) { e := x.(*entry); e.place = len(*h); *h = append(*h, e) }
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last], e.place = nil, -1
	*h = (*h)[:last]
	return e
}
