package status

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
)

// questionTime is after how long a question to the store is given up, so that its
// connection is not kept for ever.
const questionTime = 10 * time.Second

// ProbedStore lists ledgers (package storage).
type ProbedStore interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Probe asks the store for its first ledger. All callers share one question at a
// time, because a store that hangs must not be asked more and more.
type Probe struct {
	mu  sync.Mutex
	out *question // nil when none is
}

type question struct {
	answered chan struct{} // closed when err is set
	err      error
}

// AskStore returns why the store can't be read, or the error of ctx when that ends before
// the store has answered.
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
