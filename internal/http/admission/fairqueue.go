package admission

import (
	"context"
	"sync"
	"time"
)

// FairQueue hands out slots to tenants. Each tenant has a share, and the waiters of
// different tenants take turns. Its methods may be called concurrently.
type FairQueue struct {
	contention *contention
	total      int // slots in all; 0 for a share of each tenant and no bound in all
	share      int // weight below which a tenant gets a further slot
	loans      sync.Pool

	mu       sync.Mutex
	busy     int // weight that counts: of each tenant at most its share
	tenants  map[Tenant]*tenantQueue
	ready    tenantRing // tenants with waiters that are below their share
	waiters  int
	period   uint64      // between two looks at stalls, by number
	released uint64      // last period in which a slot was released
	timer    *time.Timer // of the next look; nil without waiters
	unused   []*tenantQueue
}

// tenantQueue is the slots and the waiters of one tenant, guarded by FairQueue.mu.
type tenantQueue struct {
	tenant        Tenant
	held          int // weight of its slots
	stalled       int // weight of slots that count no more
	first, newest *waiter
	released      uint64 // last period in which it released a slot

	ready          bool // in FairQueue.ready, with its neighbours
	previous, next *tenantQueue
}

// waiter is a request that waits for a slot, in the order of its tenant.
type waiter struct {
	granted        chan struct{} // closed when it has the slot
	weight         int
	queued         bool
	previous, next *waiter
}

func newFairQueue(c *contention, total, share int) *FairQueue {
	return &FairQueue{contention: c, total: total, share: share, tenants: make(map[Tenant]*tenantQueue)}
}

// NewFairQueue returns a queue that gives each tenant slots while their weight is below
// share, also to a tenant that is alone. Slots of work that stands still count.
func NewFairQueue(share int) *FairQueue { return newFairQueue(nil, 0, share) }

// TotalSlots returns the number of slots in all, 0 for no bound.
func (q *FairQueue) TotalSlots() int { return q.total }

// Acquire waits until a slot of a weight (at least 1) is free, or returns the error of ctx
// when that ends first. The caller MUST call Release after nil.
func (q *FairQueue) Acquire(ctx context.Context, t Tenant, weight int) error {
	q.contention.noteTenant(t)
	return q.AcquireQuietly(ctx, t, weight)
}

// AcquireQuietly is Acquire for work that may belong to no request: work of the service in
// the background is no contention.
func (q *FairQueue) AcquireQuietly(ctx context.Context, t Tenant, weight int) error {
	_, err := q.acquireSlot(ctx, t, weight)
	return err
}

// acquireSlot waits for a slot, and reports whether it had to.
func (q *FairQueue) acquireSlot(ctx context.Context, t Tenant, weight int) (waited bool, err error) {
	q.mu.Lock()
	o := q.tenants[t]
	if o == nil {
		o = q.addTenant(t)
	}
	if q.canGrantNow(o) {
		q.setHeldWeight(o, o.held+weight)
		q.mu.Unlock()
		return false, nil
	}
	w := &waiter{granted: make(chan struct{}), weight: weight}
	q.pushWaiter(o, w)
	q.watchStalls()
	q.mu.Unlock()
	select {
	case <-w.granted:
		return true, nil
	case <-ctx.Done():
		q.withdrawWaiter(t, w)
		return true, ctx.Err()
	}
}

// Release ends the slot of a weight.
func (q *FairQueue) Release(t Tenant, weight int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseSlot(q.tenants[t], weight)
}

func (q *FairQueue) releaseSlot(o *tenantQueue, weight int) {
	q.released, o.released = q.period, q.period
	left := o.held - weight
	if left < 0 { // the slot was among those that stood still
		o.stalled += left
		left = 0
	}
	q.setHeldWeight(o, left)
	q.grantSlots()
	if o.first != nil && q.hasOneTenant() {
		q.grantAllWaiters(o)
	}
	if o.held == 0 && o.stalled == 0 && o.first == nil {
		q.removeTenant(o)
	}
}

// canGrantNow reports whether one more slot of a tenant is free. Waiters of the tenant go first.
func (q *FairQueue) canGrantNow(o *tenantQueue) bool {
	return o.first == nil && o.held < q.share && q.hasFreeSlot() || q.hasOneTenant()
}

func (q *FairQueue) hasFreeSlot() bool { return q.total == 0 || q.busy < q.total }

func (q *FairQueue) hasOneTenant() bool { return q.contention != nil && !q.contention.isContended() }

// setHeldWeight sets the weight of a tenant's slots. Its weight beyond its share does not count
// in all: a tenant begins that much only alone, and others do not wait for it to end.
func (q *FairQueue) setHeldWeight(o *tenantQueue, held int) {
	q.busy += min(held, q.share) - min(o.held, q.share)
	o.held = held
	q.updateReady(o)
}

// updateReady puts a tenant into the ring, or takes it out.
func (q *FairQueue) updateReady(o *tenantQueue) {
	switch ready := o.first != nil && o.held < q.share; {
	case ready && !o.ready:
		q.ready.appendTenant(o)
	case !ready && o.ready:
		q.ready.removeTenant(o)
	}
}

// grantSlots gives free slots to waiters: of each tenant one, then of each the next one.
func (q *FairQueue) grantSlots() {
	for q.ready.front != nil && q.hasFreeSlot() {
		o := q.ready.front
		q.ready.removeTenant(o)
		q.grantFirstWaiter(o)
	}
}

// grantFirstWaiter gives the longest waiter of a tenant its slot.
func (q *FairQueue) grantFirstWaiter(o *tenantQueue) {
	w := o.first
	q.removeWaiter(o, w)
	q.setHeldWeight(o, o.held+w.weight)
	close(w.granted)
}

func (q *FairQueue) grantAllWaiters(o *tenantQueue) {
	for o.first != nil {
		q.grantFirstWaiter(o)
	}
}

// withdrawWaiter ends the wait of a request, or its slot if it was granted meanwhile.
func (q *FairQueue) withdrawWaiter(t Tenant, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.tenants[t]
	if !w.queued {
		q.releaseSlot(o, w.weight)
		return
	}
	q.removeWaiter(o, w)
	q.updateReady(o)
	if o.held == 0 && o.stalled == 0 && o.first == nil {
		q.removeTenant(o)
	}
}
