package log

import (
	"context"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
)

// residence is a place for a ledger in memory. Its ledger is read once, by
// whoever asks first; the others wait for that.
type residence struct {
	ready  chan struct{} // closed when led or err is set
	led    *ledger
	err    error
	recent atomic.Bool // used since the last look of the evictor
}

// ledger returns a ledger of the store, reading it when it is not in memory.
func (l *Ledgers) ledger(ctx context.Context, t id.Tenant) (*ledger, error) {
	r, first := l.reside(t)
	if first {
		r.led, r.err = l.load(context.WithoutCancel(ctx), t)
		if r.err != nil {
			l.forget(t, r)
		}
		close(r.ready)
	}
	select {
	case <-r.ready:
	case <-ctx.Done():
		return nil, storeError("load ledger", ctx.Err())
	}
	if !r.recent.Load() {
		r.recent.Store(true)
	}
	return r.led, r.err
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
