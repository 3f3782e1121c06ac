package log

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// patience is for how long an append counts as one of those that are out. After it
// the sequencer goes on as if it had landed, so that a stream of the engine that
// hangs keeps no other one waiting. Each stream still has appendsOut appends out at
// most, so what a stream that hangs has taken is bounded.
const patience = 250 * time.Millisecond

// stream is one of the engine's streams (storage.Ledgers.Stream). Its appends end
// one after another, so one goroutine lands them.
type stream struct {
	number  int
	flights chan flight // to the finisher of the stream, in commit order; nil until the first

	// Guarded by queue.mu.
	out    int       // appends of which the outcome is not known yet
	parked []*ledger // which may go when there are fewer than appendsOut
}

// appendRound is what the sequencer takes at a time: one append for each stream of which
// something goes. Its fields but parts are guarded by queue.mu.
type appendRound struct {
	parts    []*part
	began    time.Time
	streams  []*stream // that take part
	out      int       // of its appends, those of which the outcome is not known yet
	unlanded int       // of its appends, those that have not landed
	late     bool      // it has been out for longer than patience
}

// join reports whether parts of a stream may go in the round.
func (r *appendRound) join(s *stream) bool {
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

// byStream yields the parts of each stream.
func (r *appendRound) byStream() iter.Seq[[]*part] {
	return func(yield func([]*part) bool) {
		if len(r.streams) > 1 {
			slices.SortStableFunc(r.parts, func(a, b *part) int { return a.stream.number - b.stream.number })
		}
		for begin := 0; begin < len(r.parts); {
			end := begin + 1
			for end < len(r.parts) && r.parts[end].stream == r.parts[begin].stream {
				end++
			}
			if !yield(r.parts[begin:end:end]) {
				return
			}
			begin = end
		}
	}
}

// stream returns the stream that the next append of a ledger goes to.
func (q *queue) stream(led *ledger) *stream {
	n := q.streamOf(led.identity.Tenant)
	for n >= len(q.streams) {
		q.streams = append(q.streams, nil)
	}
	if q.streams[n] == nil {
		q.streams[n] = &stream{number: n}
	}
	return q.streams[n]
}

// park keeps a ledger out of the ring until its stream has room.
func (q *queue) park(led *ledger, s *stream) {
	led.lane.inRing, led.lane.parked = true, true
	q.parked += led.lane.events
	s.parked = append(s.parked, led)
}

// unpark lets the ledgers of a stream go.
func (q *queue) unpark(s *stream) {
	for _, led := range s.parked {
		q.parked -= led.lane.events
		led.lane.inRing, led.lane.parked = false, false
		q.enter(led)
	}
	s.parked = nil
}

// room reports whether another round may begin; if not, it may when something ends,
// and after wait at the latest.
func (q *queue) room() (ok bool, wait time.Duration) {
	counted, now := 0, q.now()
	for _, r := range q.rounds {
		age := now.Sub(r.began)
		r.late = r.late || age >= patience
		if r.late || r.out == 0 {
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

// ended notes that the outcome of an append is known.
func (q *queue) ended(f flight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f.round.out--
	f.stream.out--
	q.unpark(f.stream)
	q.wake.Signal()
}

// inTurn returns when the parts before these, of the same ledgers, have landed. Their
// outcome is known by then: a ledger changes its stream only after that.
func (q *queue) inTurn(parts []*part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range parts {
		for p.prior != nil && !p.prior.landed {
			q.landing.Wait()
		}
		p.prior = nil
	}
}

// oldest returns for how long the oldest append has been out, 0 when none is.
func (q *queue) oldest() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.rounds) == 0 {
		return 0
	}
	return q.now().Sub(q.rounds[0].began)
}

// out names what is under way, for the log of an operator.
func (q *queue) out() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := time.Duration(0)
	if len(q.rounds) > 0 {
		oldest = q.now().Sub(q.rounds[0].began)
	}
	return fmt.Sprintf("parts of appends that are out or being repaired: %d, the oldest since %v; events that wait: %d", q.busy, oldest.Round(time.Millisecond), q.waiting)
}
