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

// pending is an append in flight.
type pending struct {
	results []error
	done    sync.WaitGroup // one for each share
	out     *atomic.Int64  // number of shares in flight, of all appends
}

// part is one tenant's batch and the place of its result.
type part struct {
	*storage.Batch
	result *error
}

// Append implements storage.Ledgers. It gives each queue its share and waits for none of them. A tenant's appends are
// ordered by its queue.
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
		if err := checkBatch(b, seen); err != nil {
			p.results[i] = fmt.Errorf("append: %w", err)
			continue
		}
		l := e.queueFor(b.Tenant)
		if shares[l] == nil {
			shares[l] = &share{done: p.endShare}
		}
		shares[l].appendPart(part{Batch: b, result: &p.results[i]})
	}
	for l, s := range shares {
		p.done.Add(1)
		e.out.Add(1)
		if len(s.together) > 0 {
			s.arguments = e.argumentsFor(s.together)
		}
		l.queue.addWaiting(s)
	}
	return p
}

func checkBatch(b *storage.Batch, seen map[id.Tenant]bool) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if seen[b.Tenant] {
		return errors.New("more than one batch of a tenant in one append")
	}
	seen[b.Tenant] = true
	return nil
}

// endShare records that a share has its results.
func (p *pending) endShare() {
	p.out.Add(-1)
	p.done.Done()
}

// Wait implements storage.Pending.
func (p *pending) Wait() []error {
	p.done.Wait()
	return p.results
}

// answer sets the results of parts.
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

// creates reports whether the batch creates its ledger.
func (p part) creates() bool { return storage.Head{}.Continues(p.Expect) }
