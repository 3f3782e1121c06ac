package pgstore

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// doubts knows when a record that is read may not be durable. PostgreSQL shows a
// transaction once its commit is durable, unless the wait for it was cancelled;
// the reader may then be faster than the news of it.
//
// What always holds: while a transaction of this process that writes a tenant's
// records is out, there is a doubt about that tenant. There is one about all
// tenants once such a transaction had an unknown outcome, and with each new
// connection, since a server that came back from a crash shows what it had not
// replicated; that one lasts until a barrier was passed that began later.
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

// endDoubt notes what became of it.
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

// about reports whether what was just read of t needs a barrier, and up to which
// doubt that barrier settles.
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
