package witness

import (
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// queuedLedger is a ledger that moved, waits for its next round, or is in a round. An idle ledger has no entry.
type queuedLedger struct {
	tenant   id.Tenant
	own      bool      // the organization has its own witnesses; written by the round
	since    time.Time // of the first move after everything was cosigned
	moved    bool      // since the last round began
	paused   bool      // the ledger did not move, and waits for the end of a pause
	quiet    bool      // the ledger did not move before the round for which it is ready or in which it is
	running  bool
	alone    bool      // the ledger is not known to have witnesses
	soonest  time.Time // of the next round, if the ledger moves
	due      time.Time // of the next round
	position int       // in the heap; -1 if not in it
}

// roundQueue schedules the rounds. A ledger that moves gets a round at once, and the next one an interval later if it
// moved again. Ledgers with own witnesses have a separate ready queue, so that slow own witnesses do not delay other
// ledgers. Ledgers that did not move also have separate queues, because there may be thousands of them: only a few of
// their rounds run at a time, and a ledger that moves waits for at most these.
type roundQueue struct {
	limit, rounds int
	alone         bool // the service has no witnesses; organizations may have their own

	mu       sync.Mutex
	entries  map[id.Tenant]*queuedLedger
	waiting  dueHeap
	ready    [4][]*queuedLedger // with the service's witnesses, with own witnesses, and both for ledgers that did not move
	running  [4]int
	overflow uint64 // ledgers that did not fit
	changed  chan struct{}
}

func newRoundQueue(limit, rounds int) *roundQueue {
	return &roundQueue{
		limit: limit, rounds: rounds,
		entries: make(map[id.Tenant]*queuedLedger), changed: make(chan struct{}, 1),
	}
}

// enqueueMoved records that a ledger moved or is due. It returns false if the queue is full.
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

// enqueuePaused records that a ledger is due at the end of a pause. Such a ledger does not move, so half of the queue
// is reserved for ledgers that do. It returns false if there is no capacity.
func (a *roundQueue) enqueuePaused(t id.Tenant, at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[t]; e != nil { // its round handles the pause
		if e.paused && e.position >= 0 && at.Before(e.due) {
			e.due = at
			heap.Fix(&a.waiting, e.position)
			a.signalChange()
		}
		return true
	}
	if !a.hasSpareCapacity() {
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

// noteMovedAgain records that a queued ledger moved. The caller holds mu.
func (a *roundQueue) noteMovedAgain(e *queuedLedger, now time.Time) {
	if !e.moved {
		e.moved, e.since = true, now
	}
	if e.quiet && !e.running && e.position < 0 { // it is ready, after others that did not move
		i := readyQueueIndex(e)
		a.ready[i] = slices.DeleteFunc(a.ready[i], func(other *queuedLedger) bool { return other == e })
		e.quiet = false
		a.appendReady(e)
		a.signalChange()
	}
	if e.position >= 0 && e.soonest.Before(e.due) { // it waits for a paused witness, but others may be called
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

// roundLimits returns how many rounds of each ready queue may run at a time. A witness of the service handles
// serviceCalls concurrent calls, so more rounds of ledgers that did not move would only make others wait in its lane.
func (a *roundQueue) roundLimits() [4]int {
	return [4]int{a.rounds, max(a.rounds/4, 1), min(a.rounds, serviceCalls), max(a.rounds/16, 1)}
}

// takeDueRounds returns the rounds that start now, and the time of the next one, or zero if it is unknown.
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

// finishRound ends a round from the given ready queue. soonest is the time of the next round if the ledger moves.
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

// scheduleNext schedules the next round of a ledger. The caller holds mu.
func (a *roundQueue) scheduleNext(e *queuedLedger, next retryTimes) {
	switch {
	case e.moved:
	case !next.behind.IsZero():
		e.moved = true
		e.due = laterTime(e.due, earlierTime(next.behind, next.paused))
	case !next.paused.IsZero() && a.hasSpareCapacity():
		e.paused = true
		e.due = laterTime(e.due, next.paused)
	}
	heap.Push(&a.waiting, e)
}

// noteWitnesses records whether the ledger has witnesses.
func (a *roundQueue) noteWitnesses(e *queuedLedger, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.alone = !found
}

// hasSweepCapacity reports whether a sweep may add a ledger.
func (a *roundQueue) hasSweepCapacity() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hasSpareCapacity()
}

// hasSpareCapacity reports whether less than the half is used that is not reserved for moving ledgers. The caller
// holds mu.
func (a *roundQueue) hasSpareCapacity() bool { return len(a.entries) < max(a.limit/2, 1) }

// Waits returns since when each ledger with newer events has been waiting for its witnesses. A ledger without
// witnesses does not wait.
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
