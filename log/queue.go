package log

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/id"
)

// The limits of one append and of one organization's turn in it. While several organizations share the queue, each has
// one turn per append and one append in flight, so a new submission waits for at most one append of such turns.
const (
	batchEvents = 1024
	batchBytes  = 1 << 20
	turnEvents  = 64
	turnBytes   = 128 << 10
	appendsOut  = 2 // appends in flight per stream: one being synced, and the next
	maxAttempts = 8 // failed appends that a submission may be part of
	maxRefusals = 3 // the same, if the store was unavailable
)

// queue holds the waiting submissions of each ledger and hands them out in turns. A ledger is in the ring if and only if
// it has waiting submissions, is not blocked, is not parked, and either has no append in flight or does not share the
// queue. It is parked while its stream is full.
type queue struct {
	shared   func() bool // Options.Shared
	streamOf func(id.Tenant) int
	now      func() time.Time     // measures how long appends are in flight
	elapsed  func() time.Duration // Options.Elapsed

	mu      sync.Mutex
	wake    sync.Cond // the sequencer waits for it
	idle    bool      // the sequencer waits for submissions, not for capacity
	overdue *time.Timer
	ring    []*ledger
	streams []*stream      // by number; nil if the stream had no append yet
	rounds  []*appendRound // rounds with an append that has not landed, oldest first
	landing sync.Cond      // finishers wait here for one another, and releases for ledgers
	waiting int            // events of all ledgers
	parked  int            // events of parked ledgers
	busy    int            // batches in flight or being repaired
	closed  bool
	refused [2]uint64 // rejected submissions by the bound they reached: all, one organization

	sender        id.Tenant // of the latest submissions, 0 before the first
	senderChanged time.Time // when sender last changed
}

func (q *queue) setUp(shared func() bool, streamOf func(id.Tenant) int, elapsed func() time.Duration) {
	q.shared, q.streamOf, q.now, q.elapsed = shared, streamOf, time.Now, elapsed
	q.wake.L, q.landing.L = &q.mu, &q.mu
}

// pendingQueue is one ledger's part of the queue, guarded by queue.mu.
type pendingQueue struct {
	waiting   []*submission
	events    int
	inRing    bool         // or parked
	parked    bool         // its stream is full
	blocked   bool         // a reconfiguration is in flight, or a failed append is being repaired
	evicted   atomic.Bool  // left memory, so it takes no submissions; set under queue.mu
	out       int          // appends in flight with a batch of this ledger
	lastBatch *ledgerBatch // the latest of them, nil if none is in flight
}

// enqueueAll queues all submissions in their order or none. dropped reports that the ledger has left memory and has to be
// found again.
func (q *queue) enqueueAll(led *ledger, subs []*submission, maxAll, maxOne int) (dropped bool, err error) {
	n := 0
	for _, s := range subs {
		n += len(s.Drafts)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noteSender(led)
	ahead := q.waiting - q.parked // events for a full stream don't take space from the others
	if led.pending.parked {
		ahead = q.parked
	}
	switch {
	case q.closed:
		return false, errStopped
	case led.pending.evicted.Load():
		return true, nil
	case ahead+n > maxAll && led.pending.events > 0: // a few busy ledgers don't lock out the others
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

// sharedFor is how long the queue counts as shared after the sender changed.
const sharedFor = time.Second

// noteSender records which ledger the latest submissions are for.
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

// countWaiting adds n, which may be negative, to the number of a ledger's waiting events.
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

// patience is how long an append may delay the next round. After that the sequencer continues as if the append had landed,
// so that a stream of the engine that hangs does not block the others. Each stream still has at most appendsOut appends in
// flight, which bounds the events that a hanging stream holds.
const patience = 250 * time.Millisecond

// stream is one of the engine's streams (storage.Ledgers.Stream). Its appends end in their order, so one goroutine, the
// finisher, awaits them.
type stream struct {
	number   int
	launched chan appendInFlight // to the finisher, in commit order; nil until the first append

	// Guarded by queue.mu.
	out    int       // appends whose outcome is unknown
	parked []*ledger // wait until out is below appendsOut
}

// appendRound is the submissions that the sequencer takes at once: one append for each stream involved. All fields except
// batches are guarded by queue.mu.
type appendRound struct {
	batches  []*ledgerBatch
	began    time.Time
	streams  []*stream // each with one append
	out      int       // appends whose outcome is unknown
	unlanded int       // appends that have not landed
	overdue  bool      // it has been in flight for longer than patience
}

// takeRound waits until there are submissions and capacity for another append, and returns the next round. It returns nil
// when the queue is closed and empty.
func (q *queue) takeRound() *appendRound {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		capacity, wait := q.hasCapacity()
		if capacity {
			if r := q.gatherRound(); r != nil {
				return r
			}
			if q.closed && q.waiting == 0 && q.busy == 0 {
				return nil
			}
		} else {
			q.wakeAfter(wait)
		}
		q.idle = capacity
		q.wake.Wait()
		q.idle = false
	}
}

// hasCapacity reports whether another round may begin. If not, one may begin when an append ends or after wait, whichever
// is first.
func (q *queue) hasCapacity() (ok bool, wait time.Duration) {
	counted, now := 0, q.now()
	for _, r := range q.rounds {
		age := now.Sub(r.began)
		r.overdue = r.overdue || age >= patience
		if r.overdue || r.out == 0 {
			continue
		}
		if counted++; counted == 1 {
			wait = patience - age
		}
	}
	return counted < appendsOut, wait
}

// wakeAfter wakes the sequencer after d.
func (q *queue) wakeAfter(d time.Duration) {
	if q.overdue != nil {
		q.overdue.Reset(d)
		return
	}
	q.overdue = time.AfterFunc(d, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.wake.Signal()
	})
}

// gatherRound takes submissions from the ledgers in the ring, turn by turn, up to the size of one append. It returns nil
// if there are none.
func (q *queue) gatherRound() *appendRound {
	r, elapsed := &appendRound{began: q.now()}, q.elapsed()
	for events, bytes := 0, 0; len(q.ring) > 0 && events < batchEvents && bytes < batchBytes; {
		led := q.ring[0]
		q.ring = q.ring[1:]
		led.pending.inRing = false
		if led.pending.blocked || len(led.pending.waiting) == 0 {
			continue // blocked since it entered the ring; unblockLedger adds it again
		}
		p := led.pending.lastBatch
		if p == nil || p.round != r {
			s := q.streamFor(led)
			if !r.addStream(s) {
				q.parkLedger(led, s)
				continue
			}
			p = &ledgerBatch{ledger: led, round: r, stream: s, began: elapsed}
			r.batches = append(r.batches, p)
			q.addToOrder(p)
		}
		e, b := q.takeTurn(led, p)
		events, bytes = events+e, bytes+b
		q.enterRing(led)
	}
	if len(r.batches) == 0 {
		return nil
	}
	r.unlanded = r.out
	q.rounds = append(q.rounds, r)
	return r
}

// streamFor returns the stream of a ledger's next append.
func (q *queue) streamFor(led *ledger) *stream {
	n := q.streamOf(led.identity.Tenant)
	for n >= len(q.streams) {
		q.streams = append(q.streams, nil)
	}
	if q.streams[n] == nil {
		q.streams[n] = &stream{number: n}
	}
	return q.streams[n]
}

// addStream reports whether the round may contain batches of a stream.
func (r *appendRound) addStream(s *stream) bool {
	if slices.Contains(r.streams, s) {
		return true
	}
	if s.out >= appendsOut {
		return false
	}
	s.out++
	r.out++
	r.streams = append(r.streams, s)
	return true
}

// parkLedger removes a ledger from the ring until its stream has capacity.
func (q *queue) parkLedger(led *ledger, s *stream) {
	led.pending.inRing, led.pending.parked = true, true
	q.parked += led.pending.events
	s.parked = append(s.parked, led)
}

// addToOrder makes a batch the latest of its ledger.
func (q *queue) addToOrder(p *ledgerBatch) {
	pending := &p.ledger.pending
	if pending.lastBatch != nil && pending.lastBatch.stream != p.stream {
		p.prior = pending.lastBatch
	}
	pending.lastBatch = p
	p.ledger.outstanding.Begin(p.began)
	pending.out++
	q.busy++
}

// takeTurn moves up to one turn of submissions from a ledger's pending queue to its batch.
func (q *queue) takeTurn(led *ledger, p *ledgerBatch) (events, bytes int) {
	n := 0
	for n < len(led.pending.waiting) && events < turnEvents && bytes < turnBytes && !led.pending.blocked {
		s := led.pending.waiting[n]
		s.taken = true
		events += len(s.Drafts)
		bytes += s.countBytes()
		led.pending.blocked = s.Reconfigures
		n++
	}
	waiting := led.pending.waiting
	if led.pending.waiting = waiting[n:]; n == len(waiting) {
		led.pending.waiting = nil
	}
	if p.subs == nil && n == len(waiting) {
		p.subs = waiting
	} else {
		p.subs = append(p.subs, waiting[:n]...)
		clear(waiting[:n]) // they are in the batch now
	}
	q.countWaiting(led, -events)
	return events, bytes
}

// groupByStream yields the batches of each stream together.
func (r *appendRound) groupByStream() iter.Seq[[]*ledgerBatch] {
	return func(yield func([]*ledgerBatch) bool) {
		if len(r.streams) > 1 {
			slices.SortStableFunc(r.batches, func(a, b *ledgerBatch) int { return a.stream.number - b.stream.number })
		}
		for begin := 0; begin < len(r.batches); {
			end := begin + 1
			for end < len(r.batches) && r.batches[end].stream == r.batches[begin].stream {
				end++
			}
			if !yield(r.batches[begin:end:end]) {
				return
			}
			begin = end
		}
	}
}

// noteOutcome records that the outcome of an append is known, so that its stream has capacity again.
func (q *queue) noteOutcome(f appendInFlight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f.round.out--
	f.stream.out--
	q.unparkLedgers(f.stream)
	q.wake.Signal()
}

// unparkLedgers returns the parked ledgers of a stream to the ring.
func (q *queue) unparkLedgers(s *stream) {
	for _, led := range s.parked {
		q.parked -= led.pending.events
		led.pending.inRing, led.pending.parked = false, false
		q.enterRing(led)
	}
	s.parked = nil
}

// awaitEarlierBatches waits until the previous batches of the same ledgers have landed if they are in another stream. It
// does not wait for the store: a ledger changes its stream only after the outcome of its previous batch is known.
func (q *queue) awaitEarlierBatches(batches []*ledgerBatch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range batches {
		for p.prior != nil && !p.prior.landed {
			q.landing.Wait()
		}
		p.prior = nil
	}
}

// noteLanded records that an append has landed, and sets for each batch whether it was the last in flight of its ledger. A
// batch counts as busy until noteFinished.
func (q *queue) noteLanded(f appendInFlight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range f.batches {
		p.ledger.pending.out--
		p.landed = true
		if p.last = p.ledger.pending.out == 0; p.last {
			p.ledger.pending.lastBatch = nil
		}
		p.noteKnown()
		q.enterRing(p.ledger)
	}
	q.landing.Broadcast()
	if f.round.unlanded--; f.round.unlanded == 0 {
		q.rounds = slices.DeleteFunc(q.rounds, func(r *appendRound) bool { return r == f.round })
	}
}

// noteKnown records the outcome of a batch unless it failed: a repair finds out the outcome then. The caller must hold
// queue.mu.
func (p *ledgerBatch) noteKnown() {
	switch led := p.ledger; {
	case p.err != nil:
	case led.pending.out == 0 && !led.pending.blocked:
		led.outstanding.End()
	default:
		led.outstanding.Land(p.began)
	}
}

// noteFinished records that n batches are done.
func (q *queue) noteFinished(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy -= n
	q.wakeAtEnd()
}

// blockLedger keeps a ledger out of the ring until unblockLedger.
func (q *queue) blockLedger(led *ledger) {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.pending.blocked = true
}

// unblockLedger returns a ledger to the ring, with submissions that come before those that wait.
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

// wakeAtEnd wakes a sequencer that waits for a closed queue to become empty, and releases that wait for a ledger.
func (q *queue) wakeAtEnd() {
	q.landing.Broadcast()
	if q.closed {
		q.wake.Signal()
	}
}

// retireLedger makes a blocked ledger accept no more submissions and returns those that wait. The caller must answer them.
func (q *queue) retireLedger(led *ledger) []*submission {
	q.mu.Lock()
	defer q.mu.Unlock()
	led.pending.evicted.Store(true)
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

// withdrawWaiting removes the submissions that still wait from the queue and returns them. The others may be in flight.
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
	if len(back) > 0 { // submissions that still wait are not taken
		led.pending.waiting = slices.DeleteFunc(led.pending.waiting, func(s *submission) bool { return s.taken })
	}
	q.wakeAtEnd()
	return back
}

// evictLedger marks a ledger as evicted if it is idle, and reports whether it is.
func (q *queue) evictLedger(led *ledger) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !led.pending.evicted.Load() && (led.pending.out > 0 || len(led.pending.waiting) > 0 || led.pending.blocked) {
		return false
	}
	led.pending.evicted.Store(true)
	return true
}

func (q *queue) closeQueue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
}

// oldestAppend returns how long the oldest append has been in flight, or 0.
func (q *queue) oldestAppend() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.rounds) == 0 {
		return 0
	}
	return q.now().Sub(q.rounds[0].began)
}

// describeWork describes the work in flight for an error message.
func (q *queue) describeWork() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := time.Duration(0)
	if len(q.rounds) > 0 {
		oldest = q.now().Sub(q.rounds[0].began)
	}
	return fmt.Sprintf("%d batches in flight or being repaired, the oldest for %v; %d events waiting", q.busy, oldest.Round(time.Millisecond), q.waiting)
}
