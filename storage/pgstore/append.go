package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// pending is an append under way.
type pending struct {
	results []error
	landed  sync.WaitGroup // one for each share
	out     *atomic.Int64  // shares of all appends
}

// part is one tenant's batch and where its answer goes.
type part struct {
	*storage.Batch
	result *error
}

// Append implements storage.Ledgers. It gives each queue its share and waits for no queue. The
// appends of one tenant keep the order of its queue.
func (e *Engine) Append(batches []storage.Batch) storage.Pending {
	p := &pending{results: make([]error, len(batches)), out: &e.out}
	if err := e.enterAppend(context.Background()); err != nil {
		for i := range p.results {
			p.results[i] = fmt.Errorf("append: %w", err)
		}
		return p
	}
	defer e.endCall()
	shares := make(map[*connectionQueue]*share, len(e.queues))
	seen := make(map[id.Tenant]bool, len(batches))
	for i := range batches {
		b := &batches[i]
		if err := acceptable(b, seen); err != nil {
			p.results[i] = fmt.Errorf("append: %w", err)
			continue
		}
		l := e.queueOf(b.Tenant)
		if shares[l] == nil {
			shares[l] = &share{landed: p.endShare}
		}
		shares[l].appendPart(part{Batch: b, result: &p.results[i]})
	}
	for l, s := range shares {
		p.landed.Add(1)
		e.out.Add(1)
		if len(s.together) > 0 {
			s.arguments = e.argumentsOf(s.together)
		}
		l.queue.addWaiting(s)
	}
	return p
}

func acceptable(b *storage.Batch, seen map[id.Tenant]bool) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if seen[b.Tenant] {
		return errors.New("tenant twice in one append")
	}
	seen[b.Tenant] = true
	return nil
}

// endShare ends a share.
func (p *pending) endShare() {
	p.out.Add(-1)
	p.landed.Done()
}

// Wait implements storage.Pending.
func (p *pending) Wait() []error {
	p.landed.Wait()
	return p.results
}

// answer sets the answers of parts.
func answer(parts []part, err error) {
	for _, p := range parts {
		p.answer(err)
	}
}

func (p part) answer(err error) {
	if err != nil {
		err = fmt.Errorf("append: %w", err)
	}
	*p.result = err
}

// creates reports whether the batch makes its ledger.
func (p part) creates() bool { return storage.Head{}.Continues(p.Expect) }
