package admission

import (
	"context"
	"sync"
	"time"
)

// FairQueue grants slots to tenants. Each tenant has a share, and the waiters of
// different tenants take turns. All methods may be called concurrently.
type FairQueue struct {
	contention *contention
	total      int // slots; if zero, only the share of each tenant is bounded
	share      int // weight below which a tenant gets another slot
	loans      sync.Pool

	mu       sync.Mutex
	busy     int // counted weight: of each tenant at most its share
	tenants  map[Tenant]*tenantQueue
	ready    tenantRing // tenants with waiters that are below their share
	waiters  int
	period   uint64      // number of the interval between two checks for stalls
	released uint64      // last period in which a slot was released
	timer    *time.Timer // of the next check; nil without waiters
	unused   []*tenantQueue
}

// tenantQueue contains the slots and waiters of a tenant. FairQueue.mu guards it.
type tenantQueue struct {
	tenant        Tenant
	held          int // weight of its slots
	stalled       int // weight of slots that no longer count
	first, newest *waiter
	released      uint64 // last period in which it released a slot

	ready          bool // in FairQueue.ready
	previous, next *tenantQueue
}

// waiter is a request that waits for a slot, in a list of its tenant's waiters.
type waiter struct {
	granted        chan struct{} // closed when it gets the slot
	weight         int
	queued         bool
	previous, next *waiter
}

func newFairQueue(c *contention, total, share int) *FairQueue {
	return &FairQueue{contention: c, total: total, share: share, tenants: make(map[Tenant]*tenantQueue)}
}

// NewFairQueue returns a queue that grants each tenant slots while their weight is below
// share, even if the tenant is alone. Slots of stalled work count.
func NewFairQueue(share int) *FairQueue { return newFairQueue(nil, 0, share) }

// TotalSlots returns the number of slots, or 0 if there is no bound.
func (q *FairQueue) TotalSlots() int { return q.total }

// Acquire waits until a slot of a weight (at least 1) is free, or returns the error of ctx
// if that ends first. If Acquire returns nil, the caller must call Release.
func (q *FairQueue) Acquire(ctx context.Context, t Tenant, weight int) error {
	q.contention.noteTenant(t)
	return q.AcquireQuietly(ctx, t, weight)
}

// AcquireQuietly is Acquire for background work, which does not count as
// contention.
func (q *FairQueue) AcquireQuietly(ctx context.Context, t Tenant, weight int) error {
	_, err := q.acquireSlot(ctx, t, weight)
	return err
}

// acquireSlot acquires a slot, and reports whether it had to wait.
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

// Release releases a slot of a weight.
func (q *FairQueue) Release(t Tenant, weight int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releaseSlot(q.tenants[t], weight)
}

func (q *FairQueue) releaseSlot(o *tenantQueue, weight int) {
	q.released, o.released = q.period, q.period
	held := o.held - weight
	if held < 0 { // the slot was among the stalled ones
		o.stalled += held
		held = 0
	}
	q.setHeldWeight(o, held)
	q.grantSlots()
	if o.first != nil && q.hasOneTenant() {
		q.grantAllWaiters(o)
	}
	if o.held == 0 && o.stalled == 0 && o.first == nil {
		q.removeTenant(o)
	}
}

// canGrantNow reports whether another slot of a tenant is free. Waiters of the tenant precede.
func (q *FairQueue) canGrantNow(o *tenantQueue) bool {
	return o.first == nil && o.held < q.share && q.hasFreeSlot() || q.hasOneTenant()
}

func (q *FairQueue) hasFreeSlot() bool { return q.total == 0 || q.busy < q.total }

func (q *FairQueue) hasOneTenant() bool { return q.contention != nil && !q.contention.isContended() }

// setHeldWeight sets the weight of a tenant's slots. Weight beyond the share does not count toward
// the total: a tenant exceeds its share only while it is alone, and others must not wait for it.
func (q *FairQueue) setHeldWeight(o *tenantQueue, held int) {
	q.busy += min(held, q.share) - min(o.held, q.share)
	o.held = held
	q.updateReady(o)
}

// updateReady adds a tenant to the ring or removes it.
func (q *FairQueue) updateReady(o *tenantQueue) {
	switch ready := o.first != nil && o.held < q.share; {
	case ready && !o.ready:
		q.ready.appendTenant(o)
	case !ready && o.ready:
		q.ready.removeTenant(o)
	}
}

// grantSlots grants free slots to waiters, round robin over tenants.
func (q *FairQueue) grantSlots() {
	for q.ready.front != nil && q.hasFreeSlot() {
		o := q.ready.front
		q.ready.removeTenant(o)
		q.grantFirstWaiter(o)
	}
}

// grantFirstWaiter grants a slot to the tenant's waiter that has waited longest.
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

// withdrawWaiter removes a waiter, or releases its slot if it was granted in the meantime.
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
