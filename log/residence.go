package log

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/id"
)

// residence is a place for a ledger in memory. Its ledger is read once, by
// whoever asks first; the others wait for that.
type residence struct {
	ready  chan struct{} // closed when led or err is set
	led    *ledger
	err    error
	recent atomic.Bool // used since the last look of the evictor
	next   *residence  // being read, to take its place; guarded by residentMu
}

// loadTime bounds the reading of a ledger, which goes on when who asked for it is gone.
const loadTime = 30 * time.Second

// ledger returns a ledger of the store, reading it when it is not in memory. One that
// could not be repaired is returned as well: its published state can be read.
func (l *Ledgers) ledger(ctx context.Context, t id.Tenant) (*ledger, error) {
	r, first := l.reside(t)
	if first {
		go func() {
			if l.read(ctx, t, r); r.err != nil {
				l.forget(t, r)
			}
			l.open(t, r)
		}()
	}
	led, err := r.wait(ctx)
	if err == nil && led.retired.Load() {
		return l.renewed(ctx, t, led), nil
	}
	return led, err
}

// renewed returns the ledger that takes the place of a dropped one, or that one when it
// can't be read soon: its published state is still what was acknowledged.
func (l *Ledgers) renewed(ctx context.Context, t id.Tenant, old *ledger) *ledger {
	r, first := l.resideAnew(t, old)
	if !first {
		return old
	}
	l.readAnew(ctx, t, r)
	ctx, cancel := context.WithTimeout(ctx, l.renewal)
	defer cancel()
	if led, err := r.wait(ctx); err == nil {
		return led
	}
	return old
}

// read reads the ledger of a residence, for all who wait for it.
func (l *Ledgers) read(ctx context.Context, t id.Tenant, r *residence) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
	defer cancel()
	r.led, r.err = l.load(ctx, t)
}

func (r *residence) wait(ctx context.Context) (*ledger, error) {
	select {
	case <-r.ready: // mostly, and a context that nobody waits for needs no timer
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

// replace returns when a ledger that was dropped has been read again and is in the
// place of old, which readers are shown until then.
func (l *Ledgers) replace(ctx context.Context, t id.Tenant, old *ledger) error {
	r, first := l.resideAnew(t, old)
	if r == nil {
		return nil
	}
	if first {
		l.readAnew(ctx, t, r)
	}
	_, err := r.wait(ctx)
	return err
}

// readAnew begins to read what resideAnew returned.
func (l *Ledgers) readAnew(ctx context.Context, t id.Tenant, r *residence) {
	go func() {
		l.read(ctx, t, r)
		l.settleAnew(t, r)
		l.open(t, r)
	}()
}

// open lets in who waits for a residence. That a ledger has a fault may be found only
// when it is read.
func (l *Ledgers) open(t id.Tenant, r *residence) {
	close(r.ready)
	if r.led != nil && r.led.published.Load().fault.Level != Healthy {
		l.relisted.tell(t)
	}
}

// resideAnew returns the residence that is to follow that of old, nil when old has
// none any more.
func (l *Ledgers) resideAnew(t id.Tenant, old *ledger) (r *residence, first bool) {
	l.residentMu.Lock()
	defer l.residentMu.Unlock()
	now := l.resident[t]
	if now == nil || now.led != old {
		return nil, false
	}
	if now.next != nil {
		return now.next, false
	}
	now.next = &residence{ready: make(chan struct{})}
	return now.next, true
}

// settleAnew ends what resideAnew began.
func (l *Ledgers) settleAnew(t id.Tenant, r *residence) {
	l.residentMu.Lock()
	defer l.residentMu.Unlock()
	now := l.resident[t]
	if now == nil || now.next != r {
		return // evicted meanwhile
	}
	if now.next = nil; r.err == nil {
		l.resident[t] = r
	}
}

func (l *Ledgers) reside(t id.Tenant) (r *residence, first bool) {
	l.residentMu.RLock()
	r = l.resident[t]
	l.residentMu.RUnlock()
	if r != nil {
		return r, false
	}
	l.residentMu.Lock()
	defer l.residentMu.Unlock()
	if r := l.resident[t]; r != nil {
		return r, false
	}
	l.makeRoom()
	r = &residence{ready: make(chan struct{})}
	l.resident[t] = r
	return r, true
}

// evictionLook is how many ledgers are looked at to find idle ones.
const evictionLook = 16

// makeRoom drops idle ledgers that were not used lately. It looks at a few
// only: memory may pass the bound for a while, a request never waits for a sweep.
func (l *Ledgers) makeRoom() {
	if len(l.resident) < l.maxResident {
		return
	}
	looked := 0
	for t, r := range l.resident {
		if looked++; looked > evictionLook {
			return
		}
		select {
		case <-r.ready:
		default:
			continue
		}
		if !r.recent.Swap(false) && r.led != nil && l.queue.evict(r.led) {
			delete(l.resident, t)
		}
	}
}

// forget drops a residence, so that the next caller reads the ledger again.
func (l *Ledgers) forget(t id.Tenant, r *residence) {
	l.residentMu.Lock()
	defer l.residentMu.Unlock()
	if l.resident[t] == r {
		delete(l.resident, t)
	}
}
