package pgstore

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// doubts tracks when a record that is read may not be durable. PostgreSQL shows a transaction once its commit is
// durable, unless the wait for the commit was canceled. In that case, a reader may see the record before this process
// learns of the cancellation.
//
// Invariant: there is a doubt about a tenant while a transaction of this process that writes the tenant's records is in
// flight. There is a doubt about all tenants after such a transaction had an unknown outcome, and after each new
// connection, because a server that recovers from a crash shows commits that it had not replicated. A doubt about all
// tenants lasts until a barrier that started later has passed.
type doubts struct {
	mu             sync.Mutex
	out            map[id.Tenant]int
	raised, passed uint64
}

// beginDoubt records that a transaction that writes records of t is in flight.
func (d *doubts) beginDoubt(t id.Tenant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out == nil {
		d.out = make(map[id.Tenant]int)
	}
	d.out[t]++
}

// endDoubt records the end of a transaction that beginDoubt recorded. known is false if its outcome is unknown.
func (d *doubts) endDoubt(t id.Tenant, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out[t]--; d.out[t] == 0 {
		delete(d.out, t)
	}
	if !known {
		d.raised++
	}
}

// raiseDoubt records a doubt about all tenants.
func (d *doubts) raiseDoubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.raised++
}

// about reports whether records of t that were just read need a barrier. upTo is the latest doubt that such a barrier
// settles.
func (d *doubts) about(t id.Tenant) (doubt bool, upTo uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.raised > d.passed || d.out[t] > 0, d.raised
}

func (d *doubts) settleDoubts(upTo uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.passed = max(d.passed, upTo)
}

// settled returns when the records of t that were read before the call are durable.
func (e *Engine) settled(ctx context.Context, t id.Tenant) error {
	doubt, upTo := e.doubts.about(t)
	if !doubt || e.readOnly {
		return nil
	}
	if err := e.passBarrier(ctx); err != nil {
		return err
	}
	e.doubts.settleDoubts(upTo)
	return nil
}
