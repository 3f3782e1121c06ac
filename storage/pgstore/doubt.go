package pgstore

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// doubts knows when a record that is read may not be durable. PostgreSQL shows a transaction once
// its commit is durable, unless the wait for the commit was cancelled. A reader may then see the
// record before the news of the cancelled wait.
//
// Invariant: while a transaction of this process that writes a tenant's records is out, there is a doubt about that
// tenant. There is a doubt about all tenants after such a transaction had an unknown outcome. Each new connection
// also raises a doubt about all tenants, because a server after a crash shows commits that it had not replicated. A
// doubt about all tenants lasts until a barrier that began later was passed.
type doubts struct {
	mu             sync.Mutex
	out            map[id.Tenant]int
	raised, passed uint64
}

// beginDoubt notes that a transaction which writes records of t goes out.
func (d *doubts) beginDoubt(t id.Tenant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.out == nil {
		d.out = make(map[id.Tenant]int)
	}
	d.out[t]++
}

// endDoubt notes the end of a transaction that beginDoubt noted. known is false when its outcome is unknown.
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

// raiseDoubt notes a reason to doubt all that is read.
func (d *doubts) raiseDoubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.raised++
}

// about reports whether records of t that were just read need a barrier. upTo is the newest doubt
// that such a barrier settles.
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
