package log

import "slices"

// take waits until something can go, and there is room for it, and returns it in
// turns, up to the size of one append. It returns nil when the queue is closed and
// empty.
func (q *queue) take() *appendRound {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		room, wait := q.room()
		if room {
			if r := q.gather(); r != nil {
				return r
			}
			if q.closed && q.waiting == 0 && q.busy == 0 {
				return nil
			}
		} else {
			q.wakeAfter(wait)
		}
		q.idle = room
		q.wake.Wait()
		q.idle = false
	}
}

// gather takes what goes together, nil for nothing.
func (q *queue) gather() *appendRound {
	r := &appendRound{began: q.now()}
	byLedger := make(map[*ledger]*part, partCapacity)
	for events, bytes := 0, 0; len(q.ring) > 0 && events < batchEvents && bytes < batchBytes; {
		led := q.ring[0]
		q.ring = q.ring[1:]
		led.lane.inRing = false
		if led.lane.blocked || len(led.lane.waiting) == 0 {
			continue // since it entered the ring; unblock brings it back
		}
		p := byLedger[led]
		if p == nil {
			s := q.stream(led)
			if !r.join(s) {
				q.park(led, s)
				continue
			}
			p = &part{ledger: led, stream: s}
			byLedger[led] = p
			r.parts = append(r.parts, p)
			q.follow(p)
		}
		e, b := q.turn(led, p)
		events, bytes = events+e, bytes+b
		q.enter(led)
	}
	if len(r.parts) == 0 {
		return nil
	}
	r.unlanded = r.out
	q.rounds = append(q.rounds, r)
	return r
}

// follow makes a part the newest one of its ledger.
func (q *queue) follow(p *part) {
	lane := &p.ledger.lane
	if lane.newest != nil && lane.newest.stream != p.stream {
		p.prior = lane.newest
	}
	lane.newest = p
	lane.out++
	q.busy++
}

// turn moves one turn's worth from a ledger's lane to its part.
func (q *queue) turn(led *ledger, p *part) (events, bytes int) {
	n := 0
	for n < len(led.lane.waiting) && events < turnEvents && bytes < turnBytes && !led.lane.blocked {
		s := led.lane.waiting[n]
		s.taken = true
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
	q.count(led, -events)
	return events, bytes
}

// landed notes that an append with these parts ended, and of each whether it was
// the last one that is out of its ledger. A part stays busy until rested.
func (q *queue) landed(f flight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range f.parts {
		p.ledger.lane.out--
		p.landed = true
		if p.last = p.ledger.lane.out == 0; p.last {
			p.ledger.lane.newest = nil
		}
		q.enter(p.ledger)
	}
	q.landing.Broadcast()
	if f.round.unlanded--; f.round.unlanded == 0 {
		q.rounds = slices.DeleteFunc(q.rounds, func(r *appendRound) bool { return r == f.round })
	}
}

// rested notes that nothing of n parts is left to do.
func (q *queue) rested(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy -= n
	q.wakeAtEnd()
}
