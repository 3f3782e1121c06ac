package witness

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// queuedLedger is a ledger that moved, waits for its next round, or is in a round. An idle ledger has none.
type queuedLedger struct {
	tenant   id.Tenant
	own      bool      // the organization has its own witnesses; written by the round
	since    time.Time // of the first move after everything was cosigned
	moved    bool      // since the last round began
	paused   bool      // the ledger did not move, and waits for the end of a pause
	quiet    bool      // the ledger did not move before the round for which it is ready or in which it is
	running  bool
	alone    bool      // the ledger has no witnesses, as far as is known
	soonest  time.Time // of the next round, if the ledger moves
	due      time.Time // of the next round
	position int       // in the heap, -1 when not in it
}

// roundQueue orders the rounds. A ledger that moves gets a round at once, and the next one an interval later if it
// moved again. Ledgers with own witnesses have a ready queue of their own, so that slow own witnesses do not delay other
// ledgers. So have ledgers that did not move, because there may be thousands of them: only a few of their rounds run at a
// time, and a ledger that moves waits for no more than these.
type roundQueue struct {
	limit, rounds int
	alone         bool // the service has no witnesses; organizations may have their own

	mu       sync.Mutex
	entries  map[id.Tenant]*queuedLedger
	waiting  dueHeap
	ready    [4][]*queuedLedger // ledgers with the service's witnesses; with own ones; and both that did not move
	running  [4]int
	overflow uint64 // ledgers for which there was no room
	changed  chan struct{}
}

func newRoundQueue(limit, rounds int) *roundQueue {
	return &roundQueue{
		limit: limit, rounds: rounds,
		entries: make(map[id.Tenant]*queuedLedger), changed: make(chan struct{}, 1),
	}
}

// enqueueMoved notes that a ledger moved or is due. It reports false when there is no room.
func (a *roundQueue) enqueueMoved(t id.Tenant, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[t]; e != nil {
		a.noteMovedAgain(e, now)
		return true
	}
	if len(a.entries) >= a.limit {
		a.overflow++
		return false
	}
	e := &queuedLedger{tenant: t, since: now, moved: true, alone: a.alone, position: -1}
	a.entries[t] = e
	a.appendReady(e)
	a.signalChange()
	return true
}

// enqueuePaused notes that a ledger is due at the end of a pause. Such a ledger does not move, so room is reserved
// for those that do. It reports false when there is no room.
func (a *roundQueue) enqueuePaused(t id.Tenant, at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[t]; e != nil { // its round finds the pause
		if e.paused && e.position >= 0 && at.Before(e.due) {
			e.due = at
			heap.Fix(&a.waiting, e.position)
			a.signalChange()
		}
		return true
	}
	if !a.hasSpareRoom() {
		return false
	}
	e := &queuedLedger{tenant: t, paused: true, due: at, position: -1}
	a.entries[t] = e
	heap.Push(&a.waiting, e)
	a.signalChange()
	return true
}

// signalChange wakes the loop of Run. It never blocks.
func (a *roundQueue) signalChange() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// noteMovedAgain notes that a queued ledger moved. The caller holds mu.
func (a *roundQueue) noteMovedAgain(e *queuedLedger, now time.Time) {
	if !e.moved {
		e.moved, e.since = true, now
	}
	if e.quiet && !e.running && e.position < 0 { // it is ready, behind others that did not move
		i := readyQueueIndex(e)
		a.ready[i] = slices.DeleteFunc(a.ready[i], func(other *queuedLedger) bool { return other == e })
		e.quiet = false
		a.appendReady(e)
		a.signalChange()
	}
	if e.position >= 0 && e.soonest.Before(e.due) { // it waits for one witness that rests, and others may be asked
		e.due = e.soonest
		heap.Fix(&a.waiting, e.position)
		a.signalChange()
	}
}

// appendReady adds a ledger to the ready queue. The caller holds mu.
func (a *roundQueue) appendReady(e *queuedLedger) {
	i := readyQueueIndex(e)
	a.ready[i] = append(a.ready[i], e)
}

func readyQueueIndex(e *queuedLedger) (i int) {
	if e.own {
		i = 1
	}
	if e.quiet {
		i += 2
	}
	return i
}

// roundLimits returns how many rounds of each ready queue may run at a time. A witness of the service takes serviceAsks
// calls, so more rounds of ledgers that did not move would only make others wait in its lane.
func (a *roundQueue) roundLimits() [4]int {
	return [4]int{a.rounds, max(a.rounds/4, 1), min(a.rounds, serviceAsks), max(a.rounds/16, 1)}
}

// takeDueRounds returns the rounds that begin now, and the time of the next one, or zero when it is unknown.
func (a *roundQueue) takeDueRounds(now time.Time) (rounds []*queuedLedger, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.waiting) > 0 && !a.waiting[0].due.After(now) {
		e := heap.Pop(&a.waiting).(*queuedLedger)
		if e.moved || e.paused {
			e.quiet = !e.moved
			a.appendReady(e)
		} else {
			delete(a.entries, e.tenant)
		}
	}
	for i, limit := range a.roundLimits() {
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

// finishRound ends a round that began in the ready queue line. soonest is the time of the next round if the ledger
// moves.
func (a *roundQueue) finishRound(e *queuedLedger, line int, next retryTimes, soonest time.Time) {
	a.mu.Lock()
	a.running[line]--
	e.running, e.soonest, e.due = false, soonest, soonest
	if readyQueueIndex(e) != line { // it belongs to the other queue
		a.appendReady(e)
	} else {
		a.scheduleNext(e, next)
	}
	a.mu.Unlock()
	a.signalChange()
}

// scheduleNext adds a ledger to those that wait for their next round. The caller holds mu.
func (a *roundQueue) scheduleNext(e *queuedLedger, next retryTimes) {
	switch {
	case e.moved:
	case !next.behind.IsZero():
		e.moved = true
		e.due = laterTime(e.due, earlierTime(next.behind, next.paused))
	case !next.paused.IsZero() && a.hasSpareRoom():
		e.paused = true
		e.due = laterTime(e.due, next.paused)
	}
	heap.Push(&a.waiting, e)
}

// noteWitnesses notes in a round whether the ledger has a witness to wait for.
func (a *roundQueue) noteWitnesses(e *queuedLedger, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.alone = !found
}

// hasRoomForSweep reports whether a sweep may add a ledger.
func (a *roundQueue) hasRoomForSweep() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hasSpareRoom()
}

// hasSpareRoom reports whether there is more room than the half that is reserved for moving ledgers. The caller holds
// mu.
func (a *roundQueue) hasSpareRoom() bool { return len(a.entries) < max(a.limit/2, 1) }

// Waits returns since when each ledger with newer events waits for its witnesses. A ledger without witnesses does not
// wait.
func (w *Witnesses) Waits() map[id.Tenant]time.Time { return w.queue.listWaits() }

func (a *roundQueue) listWaits() map[id.Tenant]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	waits := make(map[id.Tenant]time.Time)
	for t, e := range a.entries {
		if (e.moved || e.running) && !e.alone {
			waits[t] = e.since
		}
	}
	return waits
}

// countAndOldest returns the number of ledgers that wait for their witnesses, and since when the oldest one waits.
func (a *roundQueue) countAndOldest() (n int, since time.Time) {
	waits := a.listWaits()
	for _, at := range waits {
		if since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return len(waits), since
}
