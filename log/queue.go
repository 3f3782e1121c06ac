package log

import (
	"sync"

	"github.com/agentledger/agentledger/internal/limit"
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
	appendsOut   = 2 // one being synced, one applied behind it
	maxAttempts  = 8 // failed appends that one submission may be part of
	partCapacity = 16
)

// queue holds what waits, by ledger, and hands it out in turns. A ledger is in
// the ring exactly when something of it waits, it is not blocked, and it is alone
// or has no append out.
type queue struct {
	company *limit.Company

	mu      sync.Mutex
	wake    sync.Cond
	ring    []*ledger
	waiting int // events of all ledgers
	busy    int // parts that are out or being repaired
	closed  bool
	refused [2]uint64 // submissions, by bound: all, one organization
}

func (q *queue) init(c *limit.Company) { q.company, q.wake.L = c, &q.mu }

// lane is the queue's part of a ledger, guarded by queue.mu.
type lane struct {
	waiting []*submission
	events  int
	inRing  bool
	blocked bool // a reconfiguration is out, or a failed append is being repaired
	evicted bool // dropped from memory: takes nothing any more
	out     int  // appends under way that hold a part of this ledger
}

// put queues submissions in their order, or says why it can't take them.
func (q *queue) put(led *ledger, subs []*submission, maxAll, maxOne int) error {
	n := 0
	for _, s := range subs {
		n += len(s.Drafts)
	}
	q.company.Came(limit.Party{Tenant: led.identity.Tenant})
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return errStopped
	case led.lane.evicted:
		return errEvicted
	case q.waiting+n > maxAll && led.lane.events > 0: // a few with much don't shut the others out
		q.refused[0] += uint64(len(subs))
		return overloaded("Too many events are waiting")
	case led.lane.events+n > maxOne:
		q.refused[1] += uint64(len(subs))
		return overloaded("Too many events of this organization are waiting")
	}
	led.lane.waiting = append(led.lane.waiting, subs...)
	led.lane.events += n
	q.waiting += n
	q.enter(led)
	return nil
}

// enter puts a ledger into the ring if it belongs there.
func (q *queue) enter(led *ledger) {
	if led.lane.inRing || led.lane.blocked || len(led.lane.waiting) == 0 || led.lane.out > 0 && !q.company.Alone() {
		return
	}
	led.lane.inRing = true
	q.ring = append(q.ring, led)
	q.wake.Signal()
}

// unblock lets a ledger take part again, with submissions that go first.
func (q *queue) unblock(led *ledger, first []*submission) {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.lane.blocked = false
	if len(first) > 0 {
		led.lane.waiting = append(first, led.lane.waiting...)
		for _, s := range first {
			led.lane.events += len(s.Drafts)
			q.waiting += len(s.Drafts)
		}
	}
	q.enter(led)
	q.wake.Signal() // also for a sequencer that waits for the last of a closed queue
}

// drain takes all that waits of a ledger, for answering it.
func (q *queue) drain(led *ledger) []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	subs := led.lane.waiting
	q.waiting -= led.lane.events
	led.lane.waiting, led.lane.events = nil, 0
	q.wake.Signal()
	return subs
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
}

// take waits until something can go and returns it by ledger, in turns, up to
// the size of one append. It returns nil when the queue is closed and empty.
func (q *queue) take() []*part {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if parts := q.gather(); len(parts) > 0 {
			return parts
		}
		if q.closed && q.waiting == 0 && q.busy == 0 {
			return nil
		}
		q.wake.Wait()
	}
}

func (q *queue) gather() []*part {
	var parts []*part
	byLedger := make(map[*ledger]*part, partCapacity)
	for events, bytes := 0, 0; len(q.ring) > 0 && events < batchEvents && bytes < batchBytes; {
		led := q.ring[0]
		q.ring = q.ring[1:]
		led.lane.inRing = false
		if led.lane.blocked {
			continue // since it entered the ring; unblock brings it back
		}
		p := byLedger[led]
		if p == nil {
			p = &part{ledger: led}
			byLedger[led] = p
			parts = append(parts, p)
			led.lane.out++
			q.busy++
		}
		e, b := q.turn(led, p)
		events, bytes = events+e, bytes+b
		q.enter(led)
	}
	return parts
}

// turn moves one turn's worth from a ledger's lane to its part.
func (q *queue) turn(led *ledger, p *part) (events, bytes int) {
	n := 0
	for n < len(led.lane.waiting) && events < turnEvents && bytes < turnBytes && !led.lane.blocked {
		s := led.lane.waiting[n]
		events += len(s.Drafts)
		bytes += s.bytes()
		led.lane.blocked = s.Reconfigures
		n++
	}
	p.subs = append(p.subs, led.lane.waiting[:n]...)
	clear(led.lane.waiting[:n]) // they are the part's now
	if led.lane.waiting = led.lane.waiting[n:]; len(led.lane.waiting) == 0 {
		led.lane.waiting = nil
	}
	led.lane.events -= events
	q.waiting -= events
	return events, bytes
}

// landed notes that an append with these parts ended, and of each whether it was
// the last one that is out of its ledger. A part stays busy until rested.
func (q *queue) landed(parts []*part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range parts {
		p.ledger.lane.out--
		p.last = p.ledger.lane.out == 0
		q.enter(p.ledger)
	}
}

// rested notes that nothing of n parts is left to do.
func (q *queue) rested(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy -= n
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
	if led.lane.out > 0 || len(led.lane.waiting) > 0 || led.lane.blocked {
		return false
	}
	led.lane.evicted = true
	return true
}
