package log

import (
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// The limits of one append over all organizations, and of one turn of an organization. While several organizations
// share the queue, each has one turn in an append and one append in flight. So a new submission waits for no more
// than one append of turns to be built and synced.
const (
	batchEvents = 1024
	batchBytes  = 1 << 20
	turnEvents  = 64
	turnBytes   = 128 << 10
	appendsOut  = 2 // of each stream: one being synced, one applied behind it
	maxAttempts = 8 // failed appends that one submission may be part of
	maxRefusals = 3 // of those, appends that the store could not take at the moment
)

// queue holds the waiting submissions by ledger, and hands them out in turns. A ledger is
// in the ring exactly when it has waiting submissions, is not blocked, is alone or has no
// append in flight, and is not parked. It is parked while its stream is full.
type queue struct {
	shared   func() bool // Options.Shared
	streamOf func(id.Tenant) int
	now      func() time.Time     // for how long an append has been out
	elapsed  func() time.Duration // Options.Elapsed

	mu      sync.Mutex
	wake    sync.Cond // of the sequencer
	idle    bool      // the sequencer waits for work, not for capacity
	overdue *time.Timer
	ring    []*ledger
	streams []*stream      // by number; nil where there was no append
	rounds  []*appendRound // of which something is out or has not landed, oldest first
	landing sync.Cond      // of finishers that wait for another one, and of releases
	waiting int            // events of all ledgers
	parked  int            // those of parked ledgers
	busy    int            // batches in flight or being repaired
	closed  bool
	refused [2]uint64 // submissions, by bound: all, one organization

	sender        id.Tenant // whose events came last, 0 before the first
	senderChanged time.Time // when that was another ledger than before
}

func (q *queue) setUp(shared func() bool, streamOf func(id.Tenant) int, elapsed func() time.Duration) {
	q.shared, q.streamOf, q.now, q.elapsed = shared, streamOf, time.Now, elapsed
	q.wake.L, q.landing.L = &q.mu, &q.mu
}

// pendingQueue is the part of the queue that belongs to one ledger, guarded by queue.mu.
type pendingQueue struct {
	waiting   []*submission
	events    int
	inRing    bool         // or parked
	parked    bool         // in its stream, which is full
	blocked   bool         // a reconfiguration is out, or a failed append is being repaired
	evicted   bool         // dropped from memory: takes nothing any more
	out       int          // appends in flight with a batch of this ledger
	lastBatch *ledgerBatch // the newest of those
}

// enqueueAll queues submissions in their order, or returns why it refuses them. It takes
// none for a ledger that was dropped from memory.
func (q *queue) enqueueAll(led *ledger, subs []*submission, maxAll, maxOne int) (dropped bool, err error) {
	n := 0
	for _, s := range subs {
		n += len(s.Drafts)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteSender(led)
	ahead := q.waiting - q.parked // events for a full stream take no space from the others
	if led.pending.parked {
		ahead = q.parked
	}
	switch {
	case q.closed:
		return false, errStopped
	case led.pending.evicted:
		return true, nil
	case ahead+n > maxAll && led.pending.events > 0: // a few with much don't shut the others out
		q.refused[0] += uint64(len(subs))
		return false, overloaded("Too many events are waiting")
	case led.pending.events+n > maxOne:
		q.refused[1] += uint64(len(subs))
		return false, overloaded("Too many events of this organization are waiting")
	}
	led.pending.waiting = append(led.pending.waiting, subs...)
	q.countWaiting(led, n)
	q.enterRing(led)
	return false, nil
}

// sharedFor is for how long a queue counts as shared after another ledger than the one before took events.
const sharedFor = time.Second

// noteSender notes the ledger whose events come.
func (q *queue) noteSender(led *ledger) {
	t := led.identity.Tenant
	if q.sender != 0 && q.sender != t {
		q.senderChanged = q.now()
	}
	q.sender = t
}

// isSharedNow reports whether several ledgers share the queue.
func (q *queue) isSharedNow() bool {
	return q.now().Sub(q.senderChanged) < sharedFor || q.shared()
}

// countWaiting adds n events, which may be negative, to the waiting events of a ledger.
func (q *queue) countWaiting(led *ledger, n int) {
	led.pending.events += n
	q.waiting += n
	if led.pending.parked {
		q.parked += n
	}
}

// enterRing puts a ledger into the ring if it belongs there.
func (q *queue) enterRing(led *ledger) {
	if led.pending.inRing || led.pending.blocked || len(led.pending.waiting) == 0 || led.pending.out > 0 && q.isSharedNow() {
		return
	}
	led.pending.inRing = true
	q.ring = append(q.ring, led)
	if q.idle {
		q.wake.Signal()
	}
}

// unblockLedger lets a ledger into the ring again, with submissions that go first.
func (q *queue) unblockLedger(led *ledger, first []*submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if led.pending.blocked = false; led.pending.out == 0 {
		led.outstanding.End()
	}
	led.pending.waiting = append(first, led.pending.waiting...)
	for _, s := range first {
		s.taken = false
		q.countWaiting(led, len(s.Drafts))
	}
	q.enterRing(led)
	q.wakeAtEnd()
}

// wakeAtEnd wakes a sequencer that waits for the last of a closed queue, and a release that waits for a ledger.
func (q *queue) wakeAtEnd() {
	q.landing.Broadcast()
	if q.closed {
		q.wake.Signal()
	}
}

// retireLedger drops a blocked ledger and takes its waiting submissions, which the caller answers.
func (q *queue) retireLedger(led *ledger) []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.pending.evicted = true
	led.retired.Store(true)
	subs := led.pending.waiting
	for _, s := range subs {
		s.taken = true
	}
	q.countWaiting(led, -led.pending.events)
	led.pending.waiting = nil
	q.wakeAtEnd()
	return subs
}

// withdrawWaiting takes those of subs back that wait. The others are in flight, or may be.
func (q *queue) withdrawWaiting(led *ledger, subs []*submission) (back []*submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range subs {
		if !s.taken {
			s.taken = true
			q.countWaiting(led, -len(s.Drafts))
			back = append(back, s)
		}
	}
	if len(back) > 0 { // nothing that waits is taken
		led.pending.waiting = slices.DeleteFunc(led.pending.waiting, func(s *submission) bool { return s.taken })
	}
	q.wakeAtEnd()
	return back
}

func (q *queue) closeQueue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
}

// blockLedger keeps a ledger out of the ring until unblock.
func (q *queue) blockLedger(led *ledger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.pending.blocked = true
}

// evictLedger marks an idle ledger as dropped; it reports false when it is not idle.
func (q *queue) evictLedger(led *ledger) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !led.pending.evicted && (led.pending.out > 0 || len(led.pending.waiting) > 0 || led.pending.blocked) {
		return false
	}
	led.pending.evicted = true
	return true
}
