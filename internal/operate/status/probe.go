package status

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// questionTime is the timeout of a query to the store, so that its connection is not held permanently.
const questionTime = 10 * time.Second

// ProbedStore lists ledgers (package storage).
type ProbedStore interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Probe checks for health checks whether a store answers, by asking it for its first ledger. Concurrent callers share one
// query, so a store that hangs does not receive more and more of them.
type Probe struct {
	mu  sync.Mutex
	out *question // in flight, or nil
}

type question struct {
	answered chan struct{} // closed when err is set
	err      error
}

// AskStore returns why the store cannot be read, or nil. If ctx ends before the store has answered, it returns the error
// of ctx.
func (p *Probe) AskStore(ctx context.Context, store ProbedStore) error {
	p.mu.Lock()
	q := p.out
	if q == nil {
		q = &question{answered: make(chan struct{})}
		p.out = q
		go p.readFirstTenant(context.WithoutCancel(ctx), q, store.Tenants)
	}
	p.mu.Unlock()
	select {
	case <-q.answered:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Probe) readFirstTenant(ctx context.Context, q *question,
	tenants func(context.Context) iter.Seq2[id.Tenant, error]) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	for _, q.err = range tenants(ctx) {
		break
	}
	p.mu.Lock()
	p.out = nil
	p.mu.Unlock()
	close(q.answered)
}
