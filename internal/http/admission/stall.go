package admission

import "time"

// stallTime is how long a tenant with waiters may release no slot. After that, its work
// presumably waits for something other than a processor, such as a hanging store, and its
// slots no longer count.
const stallTime = 200 * time.Millisecond

// watchStalls checks for stalls while there are waiters. In a queue without contention,
// stalled slots count, because it does not only bound work.
func (q *FairQueue) watchStalls() {
	if q.timer == nil && q.contention != nil {
		q.period++
		q.timer = time.AfterFunc(stallTime, q.releaseStalls)
	}
}

// releaseStalls stops counting the slots of stalled tenants: tenants with waiters that released
// no slot, or all tenants if no slot was released at all.
func (q *FairQueue) releaseStalls() {
	q.mu.Lock()
	defer q.mu.Unlock()
	allStill := q.total > 0 && q.released != q.period
	for _, o := range q.tenants {
		if allStill || o.first != nil && o.released != q.period {
			q.ignoreSlots(o)
		}
	}
	q.grantSlots()
	q.timer = nil
	if q.waiters > 0 {
		q.watchStalls()
	}
}

// ignoreSlots stops counting the slots of a tenant. If the queue has no total, all waiters of the tenant
// get slots at once, because they may have to wait for the same thing.
func (q *FairQueue) ignoreSlots(o *tenantQueue) {
	for {
		o.stalled += o.held
		q.setHeldWeight(o, 0)
		if q.total > 0 {
			return
		}
		for o.first != nil && o.held < q.share {
			q.grantFirstWaiter(o)
		}
		if o.first == nil {
			return
		}
	}
}
