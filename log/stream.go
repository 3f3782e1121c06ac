package log

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// patience is for how long an append keeps the next round waiting. After it the sequencer goes on as if the append
// had landed, so that a stream of the engine that hangs does not block the others. Each stream still has at most
// appendsOut appends in flight, so a stream that hangs has taken a bounded number of events.
const patience = 250 * time.Millisecond

// stream is one of the engine's streams (storage.Ledgers.Stream). Its appends end
// one after another, so one goroutine lands them.
type stream struct {
	number   int
	launched chan appendInFlight // to the finisher of the stream, in commit order; nil until the first

	// Guarded by queue.mu.
	out    int       // appends of which the outcome is not known yet
	parked []*ledger // which may go when there are fewer than appendsOut
}

// appendRound is the submissions that the sequencer takes at a time: one append for each
// stream that takes part. Its fields but batches are guarded by queue.mu.
type appendRound struct {
	batches  []*ledgerBatch
	began    time.Time
	streams  []*stream // that take part
	out      int       // of its appends, those of which the outcome is not known yet
	unlanded int       // of its appends, those that have not landed
	overdue  bool      // it has been out for longer than patience
}

// addStream reports whether batches of a stream may go in the round.
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

// groupByStream yields the batches of each stream.
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

// streamFor returns the stream that the next append of a ledger goes to.
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

// parkLedger keeps a ledger out of the ring until its stream has capacity.
func (q *queue) parkLedger(led *ledger, s *stream) {
	led.pending.inRing, led.pending.parked = true, true
	q.parked += led.pending.events
	s.parked = append(s.parked, led)
}

// unparkLedgers lets the ledgers of a stream go.
func (q *queue) unparkLedgers(s *stream) {
	for _, led := range s.parked {
		q.parked -= led.pending.events
		led.pending.inRing, led.pending.parked = false, false
		q.enterRing(led)
	}
	s.parked = nil
}

// hasCapacity reports whether another round may begin. If not, it may when an append ends,
// and after wait at the latest.
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

// wakeAfter wakes the sequencer when some time has passed.
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

// noteOutcome notes that the outcome of an append is known.
func (q *queue) noteOutcome(f appendInFlight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f.round.out--
	f.stream.out--
	q.unparkLedgers(f.stream)
	q.wake.Signal()
}

// awaitEarlierBatches returns when the batches before these, of the same ledgers, have landed. Their outcome is known
// by then, because a ledger changes its stream only after that.
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

// oldestAppend returns for how long the oldest append has been in flight, 0 for none.
func (q *queue) oldestAppend() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.rounds) == 0 {
		return 0
	}
	return q.now().Sub(q.rounds[0].began)
}

// describeWork describes the work in flight, for the log of an operator.
func (q *queue) describeWork() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := time.Duration(0)
	if len(q.rounds) > 0 {
		oldest = q.now().Sub(q.rounds[0].began)
	}
	return fmt.Sprintf("parts of appends that are out or being repaired: %d, the oldest since %v; events that wait: %d", q.busy, oldest.Round(time.Millisecond), q.waiting)
}
