package admission

// maxUnused bounds the tenantQueues that are kept for reuse.
const maxUnused = 64

func (q *FairQueue) addTenant(t Tenant) *tenantQueue {
	var o *tenantQueue
	if last := len(q.unused) - 1; last >= 0 {
		o, q.unused = q.unused[last], q.unused[:last]
	} else {
		o = new(tenantQueue)
	}
	o.tenant = t
	q.tenants[t] = o
	return o
}

// removeTenant removes a tenant without slots and waiters.
func (q *FairQueue) removeTenant(o *tenantQueue) {
	delete(q.tenants, o.tenant)
	*o = tenantQueue{}
	if len(q.unused) < maxUnused {
		q.unused = append(q.unused, o)
	}
}

func (q *FairQueue) pushWaiter(o *tenantQueue, w *waiter) {
	q.waiters++
	w.queued = true
	if w.previous = o.newest; w.previous == nil {
		o.first = w
	} else {
		w.previous.next = w
	}
	o.newest = w
	q.updateReady(o)
}

func (q *FairQueue) removeWaiter(o *tenantQueue, w *waiter) {
	q.waiters--
	w.queued = false
	if w.previous == nil {
		o.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		o.newest = w.previous
	} else {
		w.next.previous = w.previous
	}
}

// tenantRing contains the tenants that get the next slots, in order.
type tenantRing struct{ front, back *tenantQueue }

func (r *tenantRing) appendTenant(o *tenantQueue) {
	o.ready, o.previous, o.next = true, r.back, nil
	if r.back == nil {
		r.front = o
	} else {
		r.back.next = o
	}
	r.back = o
}

func (r *tenantRing) removeTenant(o *tenantQueue) {
	if o.previous == nil {
		r.front = o.next
	} else {
		o.previous.next = o.next
	}
	if o.next == nil {
		r.back = o.previous
	} else {
		o.next.previous = o.previous
	}
	o.ready, o.previous, o.next = false, nil, nil
}
