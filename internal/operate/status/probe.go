package status

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// queryTime is the timeout of a query to the store, so that its connection is not held permanently.
const queryTime = 10 * time.Second

// ProbedStore lists ledgers.
type ProbedStore interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Probe checks whether a store responds, by reading its first ledger. Concurrent callers share one query, so a store
// that hangs does not receive more and more of them.
type Probe struct {
	mu      sync.Mutex
	current *query // in flight, or nil
}

type query struct {
	done chan struct{} // closed when err is set
	err  error
}

// CheckStore returns why the store cannot be read, or nil. If ctx ends before the store has responded, it returns the
// error of ctx.
func (p *Probe) CheckStore(ctx context.Context, store ProbedStore) error {
	p.mu.Lock()
	q := p.current
	if q == nil {
		q = &query{done: make(chan struct{})}
		p.current = q
		go p.readFirstTenant(context.WithoutCancel(ctx), q, store.Tenants)
	}
	p.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Probe) readFirstTenant(ctx context.Context, q *query,
	tenants func(context.Context) iter.Seq2[id.Tenant, error]) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	for _, q.err = range tenants(ctx) {
		break
	}
	p.mu.Lock()
	p.current = nil
	p.mu.Unlock()
	close(q.done)
}
