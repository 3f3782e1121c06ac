package log

import "slices"

// takeRound waits until something can go, and an append may begin, and returns that in turns, up to the size of one
// append. It returns nil when the queue is closed and empty.
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

// gatherRound takes the submissions that go together, nil for none.
func (q *queue) gatherRound() *appendRound {
	r, elapsed := &appendRound{began: q.now()}, q.elapsed()
	for events, bytes := 0, 0; len(q.ring) > 0 && events < batchEvents && bytes < batchBytes; {
		led := q.ring[0]
		q.ring = q.ring[1:]
		led.pending.inRing = false
		if led.pending.blocked || len(led.pending.waiting) == 0 {
			continue // since it entered the ring; unblock brings it back
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

// addToOrder makes a batch the newest one of its ledger.
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

// takeTurn moves one turn's worth of submissions from the pending queue of a ledger to its batch.
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

// noteLanded notes that an append ended, and sets for each of its batches whether it was
// the last one in flight of its ledger. A batch stays busy until noteFinished.
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

// noteKnown notes that the outcome of a batch is known, if it is. The caller holds queue.mu.
func (p *ledgerBatch) noteKnown() {
	switch led := p.ledger; {
	case p.err != nil: // until the repair
	case led.pending.out == 0 && !led.pending.blocked:
		led.outstanding.End()
	default:
		led.outstanding.Land(p.began)
	}
}

// noteFinished notes that nothing is left to do for n batches.
func (q *queue) noteFinished(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy -= n
	q.wakeAtEnd()
}
