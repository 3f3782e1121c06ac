package log

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/id"
)

// cacheSlot is the place of a ledger in memory. The first caller has the ledger read; the others wait for that.
type cacheSlot struct {
	ready  chan struct{} // closed when led or err is set
	led    *ledger
	err    error
	recent atomic.Bool // used since the last look of the evictor
	ended  bool        // released, also while it is being read; guarded by slotsMu
	next   *cacheSlot  // being read, to take its place; guarded by slotsMu
}

// loadTime bounds the reading of a ledger, which goes on when its caller has left.
const loadTime = 30 * time.Second

// residentLedger returns a ledger of the store, reading it when it is not in memory. A ledger that could not be
// repaired is returned as well, because its published state can be read.
//
// ErrNotOwner when the process does not own the ledger now.
func (l *Ledgers) residentLedger(ctx context.Context, t id.Tenant) (*ledger, error) {
	if err := l.fences.Check(t); err != nil {
		return nil, err
	}
	return l.readLedger(ctx, t)
}

// readLedger is residentLedger for every process. A ledger that is not frozen is taken over.
func (l *Ledgers) readLedger(ctx context.Context, t id.Tenant) (*ledger, error) {
	r, first := l.findOrAddSlot(t)
	if first {
		go func() {
			if l.fillSlot(ctx, t, r); r.err != nil {
				l.forgetSlot(t, r)
			}
			l.openSlot(t, r)
		}()
	}
	led, err := r.awaitLedger(ctx)
	if err == nil && led.retired.Load() {
		return l.renewLedger(ctx, t, led), nil
	}
	return led, err
}

// renewLedger returns the ledger that replaces a dropped one. It returns the dropped one if the ledger can't be read
// soon, because the published state of that is still acknowledged.
func (l *Ledgers) renewLedger(ctx context.Context, t id.Tenant, old *ledger) *ledger {
	r, first := l.addSuccessorSlot(t, old)
	if !first {
		return old
	}
	l.fillSuccessorSlot(ctx, t, r)
	ctx, cancel := context.WithTimeout(ctx, l.renewal)
	defer cancel()
	if led, err := r.awaitLedger(ctx); err == nil {
		return led
	}
	return old
}

// fillSlot reads the ledger of a slot, for all callers that wait.
func (l *Ledgers) fillSlot(ctx context.Context, t id.Tenant, r *cacheSlot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
	defer cancel()
	if r.err = l.checkEnded(t); r.err == nil {
		r.led, r.err = l.loadLedger(ctx, t)
	}
}

func (r *cacheSlot) awaitLedger(ctx context.Context) (*ledger, error) {
	select {
	case <-r.ready: // mostly: then the context's timer need not start
	default:
		select {
		case <-r.ready:
		case <-ctx.Done():
			return nil, storeError("load ledger", ctx.Err())
		}
	}
	if !r.recent.Load() {
		r.recent.Store(true)
	}
	return r.led, r.err
}

// replaceLedger returns when a ledger that was dropped has been read again and has
// replaced old. Readers see old until then.
func (l *Ledgers) replaceLedger(ctx context.Context, t id.Tenant, old *ledger) error {
	r, first := l.addSuccessorSlot(t, old)
	if r == nil {
		return nil
	}
	if first {
		l.fillSuccessorSlot(ctx, t, r)
	}
	_, err := r.awaitLedger(ctx)
	return err
}

// fillSuccessorSlot begins to read the ledger of a slot that addSuccessorSlot returned.
func (l *Ledgers) fillSuccessorSlot(ctx context.Context, t id.Tenant, r *cacheSlot) {
	go func() {
		l.fillSlot(ctx, t, r)
		l.settleSuccessorSlot(t, r)
		l.openSlot(t, r)
	}()
}

// openSlot lets the waiting callers of a slot go on. A fault of the ledger may be found only by reading it.
func (l *Ledgers) openSlot(t id.Tenant, r *cacheSlot) {
	l.refuseEnded(r)
	close(r.ready)
	if r.led != nil && r.led.published.Load().fault.Level != Healthy {
		l.relisted.Tell(t)
	}
}

// addSuccessorSlot returns the slot that is to follow that of old, nil when old has no slot any more.
func (l *Ledgers) addSuccessorSlot(t id.Tenant, old *ledger) (r *cacheSlot, first bool) {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	now := l.slots[t]
	if now == nil || now.led != old {
		return nil, false
	}
	if now.next != nil {
		return now.next, false
	}
	now.next = &cacheSlot{ready: make(chan struct{})}
	return now.next, true
}

// settleSuccessorSlot puts a slot of addSuccessorSlot into its place when its ledger was read.
func (l *Ledgers) settleSuccessorSlot(t id.Tenant, r *cacheSlot) {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	now := l.slots[t]
	if now == nil || now.next != r {
		return // evicted meanwhile
	}
	if now.next = nil; r.err == nil {
		l.slots[t] = r
	}
}

func (l *Ledgers) findOrAddSlot(t id.Tenant) (r *cacheSlot, first bool) {
	l.slotsMu.RLock()
	r = l.slots[t]
	l.slotsMu.RUnlock()
	if r != nil {
		return r, false
	}
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	if r := l.slots[t]; r != nil {
		return r, false
	}
	l.evictIdleLedgers()
	r = &cacheSlot{ready: make(chan struct{})}
	l.slots[t] = r
	return r, true
}

// evictionLook is how many ledgers are looked at to find idle ones.
const evictionLook = 16

// evictIdleLedgers drops idle ledgers that were not used lately. It looks at a few
// only: memory may pass the bound for a while, a request never waits for a sweep.
func (l *Ledgers) evictIdleLedgers() {
	if len(l.slots) < l.maxResident {
		return
	}
	looked := 0
	for t, r := range l.slots {
		if looked++; looked > evictionLook {
			return
		}
		select {
		case <-r.ready:
		default:
			continue
		}
		if !r.recent.Swap(false) && r.led != nil && l.queue.evictLedger(r.led) {
			delete(l.slots, t)
		}
	}
}

// forgetSlot drops a slot, so that the next caller reads the ledger again.
func (l *Ledgers) forgetSlot(t id.Tenant, r *cacheSlot) {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	if l.slots[t] == r {
		delete(l.slots, t)
	}
}
