package admission

import (
	"context"
	"io"
	"time"
)

// clientTime is how long a request that waits for its client keeps its slot.
const clientTime = 20 * time.Millisecond

// slot is the slot of one request in a FairQueue. One goroutine uses it at a time.
type slot struct {
	queue   *FairQueue
	tenant  Tenant
	weight  int
	held    bool
	waited  bool     // the slot was not free at once
	hasBody bool     // body is in use
	body    slotBody // of a request with a body
	loan    *loan    // nil unless the slot is lent
	lost    error    // why no slot could be acquired again
}

func (s *slot) acquireSlot(ctx context.Context) error {
	s.queue.contention.noteTenant(s.tenant)
	s.waited, s.lost = s.queue.acquireSlot(ctx, s.tenant, s.weight)
	s.held = s.lost == nil
	return s.lost
}

// lendToOthers releases the slot after clientTime unless reclaimSlot is called first. It must precede
// reads from and writes to a client, so that a slow client does not hold a slot.
func (s *slot) lendToOthers() {
	if !s.held || s.loan != nil {
		return
	}
	l, _ := s.queue.loans.Get().(*loan)
	if l == nil {
		l = &loan{queue: s.queue}
	}
	l.tenant, l.weight = s.tenant, s.weight
	if l.timer == nil {
		l.timer = time.AfterFunc(clientTime, l.releaseSlot)
	} else {
		l.timer.Reset(clientTime)
	}
	s.loan = l
}

// keepIfHeld ends lendToOthers, and reports whether the slot is still held.
func (s *slot) keepIfHeld() bool {
	if s.loan != nil {
		if s.held = s.loan.timer.Stop(); s.held {
			s.queue.loans.Put(s.loan) // the timer did not run and will not
		}
		s.loan = nil
	}
	return s.held
}

// reclaimSlot ends lendToOthers, and waits for another slot if the slot was released in the meantime.
func (s *slot) reclaimSlot(ctx context.Context) error {
	if s.lost != nil || s.keepIfHeld() {
		return s.lost
	}
	return s.acquireSlot(ctx)
}

func (s *slot) releaseSlot() {
	if s.keepIfHeld() {
		s.held = false
		s.queue.Release(s.tenant, s.weight)
	}
}

// loan releases a slot after a time. Loans that ended before that are reused.
type loan struct {
	queue  *FairQueue
	timer  *time.Timer
	tenant Tenant
	weight int
}

func (l *loan) releaseSlot() { l.queue.Release(l.tenant, l.weight) }

// slotBody is the body of a request that holds a slot or acquires it at the end of the body.
type slotBody struct {
	io.ReadCloser
	ctx  context.Context // of the request
	slot *slot
}

// Read implements io.Reader.
func (b *slotBody) Read(p []byte) (int, error) {
	b.slot.lendToOthers()
	n, err := b.ReadCloser.Read(p)
	if err != nil { // mostly io.EOF
		if lost := b.slot.reclaimSlot(b.ctx); lost != nil {
			err = lost
		}
	}
	return n, err
}
