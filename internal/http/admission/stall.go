package admission

import "time"

// stallTime is for how long a tenant with waiters may release no slot. After that its work
// waits for something else than a processor, for example for a store that hangs. Its
// slots count no more then.
const stallTime = 200 * time.Millisecond

// watchStalls begins to look for stalls while there are waiters. A queue without contention
// bounds more than work, so stalled slots count there.
func (q *FairQueue) watchStalls() {
	if q.timer == nil && q.contention != nil {
		q.period++
		q.timer = time.AfterFunc(stallTime, q.releaseStalls)
	}
}

// releaseStalls stops counting the slots of tenants that stand still: of a tenant whose
// own waiters wait, and of all tenants when no slot was released at all.
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

// ignoreSlots stops counting the slots of a tenant. Without a bound in all, its waiters all
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
