package log

import (
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// What one append takes at most, over all organizations, and what one
// organization may take before it is the next one's turn. In company it has one
// turn in an append and one append out: whoever comes waits for no more than that
// to be built, and for the sync of no more than that.
const (
	batchEvents  = 1024
	batchBytes   = 1 << 20
	turnEvents   = 64
	turnBytes    = 128 << 10
	appendsOut   = 2 // of each stream: one being synced, one applied behind it
	maxAttempts  = 8 // failed appends that one submission may be part of
	maxRefusals  = 3 // of those, appends that the store could not take at the moment
	partCapacity = 16
)

// queue holds what waits, by ledger, and hands it out in turns. A ledger is in
// the ring exactly when something of it waits, it is not blocked, it is alone or has
// no append out, and its stream was not found to be full; then it is parked there.
type queue struct {
	shared   func() bool // Options.Shared
	streamOf func(id.Tenant) int
	now      func() time.Time // for how long an append has been out

	mu      sync.Mutex
	wake    sync.Cond // of the sequencer
	idle    bool      // the sequencer waits for work, not for room
	overdue *time.Timer
	ring    []*ledger
	streams []*stream      // by number; nil where there was no append
	rounds  []*appendRound // of which something is out or has not landed, oldest first
	landing sync.Cond      // of finishers that wait for another one
	waiting int            // events of all ledgers
	parked  int            // those of parked ledgers
	busy    int            // parts that are out or being repaired
	closed  bool
	refused [2]uint64 // submissions, by bound: all, one organization

	sender        id.Tenant // whose events came last, 0 before the first
	senderChanged time.Time // when that was another ledger than before
}

func (q *queue) init(shared func() bool, streamOf func(id.Tenant) int) {
	q.shared, q.streamOf, q.now = shared, streamOf, time.Now
	q.wake.L, q.landing.L = &q.mu, &q.mu
}

// lane is the queue's part of a ledger, guarded by queue.mu.
type lane struct {
	waiting []*submission
	events  int
	inRing  bool  // or parked
	parked  bool  // in its stream, which is full
	blocked bool  // a reconfiguration is out, or a failed append is being repaired
	evicted bool  // dropped from memory: takes nothing any more
	out     int   // appends under way that hold a part of this ledger
	newest  *part // of them, the last one
}

// put queues submissions in their order, or says why it can't take them. It takes none
// of a ledger that was dropped from memory.
func (q *queue) put(led *ledger, subs []*submission, maxAll, maxOne int) (dropped bool, err error) {
	n := 0
	for _, s := range subs {
		n += len(s.Drafts)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteSender(led)
	ahead := q.waiting - q.parked // what a stream can't take at the moment takes no room from the others
	if led.lane.parked {
		ahead = q.parked
	}
	switch {
	case q.closed:
		return false, errStopped
	case led.lane.evicted:
		return true, nil
	case ahead+n > maxAll && led.lane.events > 0: // a few with much don't shut the others out
		q.refused[0] += uint64(len(subs))
		return false, overloaded("Too many events are waiting")
	case led.lane.events+n > maxOne:
		q.refused[1] += uint64(len(subs))
		return false, overloaded("Too many events of this organization are waiting")
	}
	led.lane.waiting = append(led.lane.waiting, subs...)
	q.count(led, n)
	q.enter(led)
	return false, nil
}

// sharedFor is for how long a queue counts as shared after another ledger than the one
// before took events.
const sharedFor = time.Second

// noteSender notes whose events come.
func (q *queue) noteSender(led *ledger) {
	t := led.identity.Tenant
	if q.sender != 0 && q.sender != t {
		q.senderChanged = q.now()
	}
	q.sender = t
}

// isShared reports whether several ledgers share the queue.
func (q *queue) isShared() bool {
	return q.now().Sub(q.senderChanged) < sharedFor || q.shared()
}

// count adds n events, which may be negative, to what waits of a ledger.
func (q *queue) count(led *ledger, n int) {
	led.lane.events += n
	q.waiting += n
	if led.lane.parked {
		q.parked += n
	}
}

// enter puts a ledger into the ring if it belongs there.
func (q *queue) enter(led *ledger) {
	if led.lane.inRing || led.lane.blocked || len(led.lane.waiting) == 0 || led.lane.out > 0 && q.isShared() {
		return
	}
	led.lane.inRing = true
	q.ring = append(q.ring, led)
	if q.idle {
		q.wake.Signal()
	}
}

// unblock lets a ledger take part again, with submissions that go first.
func (q *queue) unblock(led *ledger, first []*submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.lane.blocked = false
	if len(first) > 0 {
		led.lane.waiting = append(first, led.lane.waiting...)
		for _, s := range first {
			s.taken = false
			q.count(led, len(s.Drafts))
		}
	}
	q.enter(led)
	q.wakeAtEnd()
}

// wakeAtEnd wakes a sequencer that waits for the last of a closed queue.
func (q *queue) wakeAtEnd() {
	if q.closed {
		q.wake.Signal()
	}
}

// retire drops a blocked ledger and takes all that waits of it, for answering that.
func (q *queue) retire(led *ledger) []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.lane.evicted = true
	led.retired.Store(true)
	subs := led.lane.waiting
	for _, s := range subs {
		s.taken = true
	}
	q.count(led, -led.lane.events)
	led.lane.waiting = nil
	q.wakeAtEnd()
	return subs
}

// withdraw takes those of subs back that wait. The others are out, or may be.
func (q *queue) withdraw(led *ledger, subs []*submission) (back []*submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range subs {
		if !s.taken {
			s.taken = true
			q.count(led, -len(s.Drafts))
			back = append(back, s)
		}
	}
	if len(back) > 0 { // nothing that waits is taken
		led.lane.waiting = slices.DeleteFunc(led.lane.waiting, func(s *submission) bool { return s.taken })
	}
	q.wakeAtEnd()
	return back
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
}

// block keeps a ledger out of the ring until unblock.
func (q *queue) block(led *ledger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.lane.blocked = true
}

// evict marks an idle ledger as dropped; it reports false when it is not idle.
func (q *queue) evict(led *ledger) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !led.lane.evicted && (led.lane.out > 0 || len(led.lane.waiting) > 0 || led.lane.blocked) {
		return false
	}
	led.lane.evicted = true
	return true
}
