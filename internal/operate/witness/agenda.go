package witness

import (
	"container/heap"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// entry is a ledger that moved, waits for its next round, or is in one. There is
// none for an idle ledger.
type entry struct {
	tenant  id.Tenant
	own     bool      // it has witnesses of its own; written by its round
	since   time.Time // when it moved first after all was cosigned
	moved   bool      // since its last round began
	paused  bool      // it did not move, and waits for the end of a pause
	running bool
	soonest time.Time // of the next round, if it moves
	due     time.Time // of the next round
	place   int       // in the heap, -1 when not in it
}

// agenda is the order of rounds. A ledger that moves is asked about at once, and
// again an interval later if it moved meanwhile. Ledgers with own witnesses wait
// in a line of their own, so that slow ones hold up nobody else's.
type agenda struct {
	limit, rounds int

	mu       sync.Mutex
	entries  map[id.Tenant]*entry
	waiting  dueHeap
	ready    [2][]*entry // the service's witnesses; own ones
	running  [2]int
	overflow uint64 // ledgers for which there was no room
	changed  chan struct{}
}

func newAgenda(limit, rounds int) *agenda {
	return &agenda{limit: limit, rounds: rounds, entries: make(map[id.Tenant]*entry), changed: make(chan struct{}, 1)}
}

// add notes that a ledger moved, or is to be looked at. False: there was no room.
func (a *agenda) add(t id.Tenant, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[t]; e != nil {
		a.movedAgain(e, now)
		return true
	}
	if len(a.entries) >= a.limit {
		a.overflow++
		return false
	}
	e := &entry{tenant: t, since: now, moved: true, place: -1}
	a.entries[t] = e
	a.line(e)
	a.tell()
	return true
}

// addPaused notes that a ledger is to be looked at when a pause ends. It is for ledgers
// that do not move, and leaves room for those that do: false when there is none.
func (a *agenda) addPaused(t id.Tenant, at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries[t] != nil { // its own round finds the pause
		return true
	}
	if !a.roomy() {
		return false
	}
	e := &entry{tenant: t, paused: true, due: at, place: -1}
	a.entries[t] = e
	heap.Push(&a.waiting, e)
	a.tell()
	return true
}

// tell wakes who begins rounds; it never waits.
func (a *agenda) tell() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// movedAgain notes that a ledger moved of which there is an entry; the caller holds mu.
func (a *agenda) movedAgain(e *entry, now time.Time) {
	if !e.moved {
		e.moved, e.since = true, now
	}
	if e.place >= 0 && e.soonest.Before(e.due) { // it waits for a witness that rests; others may not
		e.due = e.soonest
		heap.Fix(&a.waiting, e.place)
		a.tell()
	}
}

// line puts an entry to those that can begin; the caller holds mu.
func (a *agenda) line(e *entry) {
	i := lineOf(e)
	a.ready[i] = append(a.ready[i], e)
}

func lineOf(e *entry) int {
	if e.own {
		return 1
	}
	return 0
}

// begin returns the rounds that begin now, and when the next may; the zero time
// when that is not known yet.
func (a *agenda) begin(now time.Time) (rounds []*entry, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.waiting) > 0 && !a.waiting[0].due.After(now) {
		e := heap.Pop(&a.waiting).(*entry)
		if e.moved || e.paused {
			a.line(e)
		} else {
			delete(a.entries, e.tenant)
		}
	}
	for i, limit := range [2]int{a.rounds, max(a.rounds/4, 1)} {
		for a.running[i] < limit && len(a.ready[i]) > 0 {
			e := a.ready[i][0]
			a.ready[i] = a.ready[i][1:]
			if !e.moved {
				e.since = now
			}
			e.running, e.moved, e.paused = true, false, false
			a.running[i]++
			rounds = append(rounds, e)
		}
	}
	if len(a.waiting) > 0 {
		next = a.waiting[0].due
	}
	return rounds, next
}

// end ends a round that began in a line; soonest is when the ledger may be asked about
// again since it moved.
func (a *agenda) end(e *entry, line int, next again, soonest time.Time) {
	a.mu.Lock()
	a.running[line]--
	e.running, e.soonest, e.due = false, soonest, soonest
	if lineOf(e) != line { // it belongs to the other line
		a.line(e)
	} else {
		a.await(e, next)
	}
	a.mu.Unlock()
	a.tell()
}

// await puts an entry to those that wait for their next round; the caller holds mu.
func (a *agenda) await(e *entry, next again) {
	switch {
	case e.moved:
	case !next.behind.IsZero():
		e.moved = true
		e.due = later(e.due, earlier(next.behind, next.paused))
	case !next.paused.IsZero() && a.roomy():
		e.paused = true
		e.due = later(e.due, next.paused)
	}
	heap.Push(&a.waiting, e)
}

// hasRoom reports whether a sweep may add.
func (a *agenda) hasRoom() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.roomy()
}

// roomy reports whether there is more room than what moves needs; the caller holds mu.
func (a *agenda) roomy() bool { return len(a.entries) < max(a.limit/2, 1) }

// size returns how many ledgers are in memory, and since when the one that waits
// longest does.
func (a *agenda) size() (n int, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.entries {
		if (e.moved || e.running) && (since.IsZero() || e.since.Before(since)) {
			since = e.since
		}
	}
	return len(a.entries), since
}
