package pebblestore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// maxHeads bounds the cache of heads. A full cache takes about 15 MB.
const maxHeads = 1 << 16

// pending is an append in flight.
type pending struct {
	engine  *Engine
	results []error
	commit  *commit // the commit on which the accepted batches and the rejections depend
}

// Append implements storage.Ledgers. It checks and applies the batches under the write lock, and leaves the sync to
// Wait.
func (e *Engine) Append(batches []storage.Batch) storage.Pending {
	p := &pending{engine: e, results: make([]error, len(batches))}
	if err := e.enterWrite(context.Background()); err != nil {
		p.setRemaining(fmt.Errorf("append: %w", err))
		return p
	}
	defer e.endCall()
	e.write.Lock()
	defer e.write.Unlock()
	p.commit = e.write.last
	if err := e.appendAccepted(p, batches); err != nil {
		p.setRemaining(fmt.Errorf("append: %w", err))
	}
	return p
}

// Stream implements storage.Ledgers. All appends go through one log, and one sync makes all earlier ones durable.
func (e *Engine) Stream(id.Tenant) int { return 0 }

// setRemaining sets the result of every batch that has none yet.
func (p *pending) setRemaining(err error) {
	for i := range p.results {
		if p.results[i] == nil {
			p.results[i] = err
		}
	}
}

// Wait implements storage.Pending.
func (p *pending) Wait() []error {
	if err := p.commit.waitDurable(); err != nil {
		clear(p.results)
		p.setRemaining(fmt.Errorf("append: %w", err))
	}
	return p.results
}

// appendAccepted sets the results of the batches that are rejected, and commits the others as one.
func (e *Engine) appendAccepted(p *pending, batches []storage.Batch) error {
	c := e.newChecker(batches)
	b := e.newPebbleBatch(batches)
	heads := make([]head, len(batches))
	for _, i := range sortByTenant(batches) {
		if err := c.checkBatch(&batches[i]); err != nil {
			p.results[i] = fmt.Errorf("append: %w", err)
			continue
		}
		heads[i] = e.write.writer.putBatch(b, &batches[i], &c.head, c.part)
		if c.erases {
			e.write.writer.putErasures(b, batches[i].Tenant, c.erased, e.file.storeFormat())
			e.erasures.Add(b, erasuresKey())
		}
		c.putChanges(b)
	}
	if err := c.closeSearch(); err != nil {
		return err
	}
	if b.Empty() {
		return b.Close()
	}
	commit, err := e.applyBatch(b, c.written)
	if err != nil {
		return err
	}
	p.commit = commit
	e.recent.addNames(c.claimed)
	for i := range c.claimed {
		e.names.Add(c.claimed[i].key[:])
	}
	for i := range batches {
		if p.results[i] == nil {
			e.cacheHead(batches[i].Tenant, heads[i])
		}
	}
	return nil
}

// sortByTenant returns the indices of the batches in the order of their tenants, and so of their keys.
func sortByTenant(batches []storage.Batch) []int {
	order := make([]int, len(batches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(batches[a].Tenant, batches[b].Tenant) })
	return order
}

// maxRetained bounds the buffer that Pebble's pool of batches retains.
const maxRetained = 8 << 20

// newPebbleBatch returns a batch with capacity for all of batches.
func (e *Engine) newPebbleBatch(batches []storage.Batch) *pebble.Batch {
	n := 0
	for i := range batches {
		n += estimateBatchBytes(&batches[i])
	}
	return e.db.NewBatch(pebble.WithInitialSizeBytes(n), pebble.WithMaxRetainedSizeBytes(maxRetained))
}

// perKey is the approximate overhead of a key in a batch, in bytes: the key, two lengths and an operation.
const perKey = 40

func estimateBatchBytes(b *storage.Batch) int {
	n := 2*perKey + headLen
	for i := range b.Events {
		n += 5*perKey + entryLen + eventLen(&b.Events[i])
	}
	n += len(b.Tiles) * (2*perKey + storage.TileSize + 32)
	for i := range b.Changes {
		n += perKey + len(b.Changes[i].Key) + len(b.Changes[i].Value)
	}
	return n + len(b.Counters)*2*perKey
}

// cacheHead caches an applied head. The caller must hold the write lock. If the cache is full, some heads are dropped;
// a dropped head is read again when it is needed.
func (e *Engine) cacheHead(t id.Tenant, h head) {
	if len(e.write.heads) >= maxHeads {
		for old := range e.write.heads {
			delete(e.write.heads, old)
			if len(e.write.heads) < maxHeads*3/4 {
				break
			}
		}
	}
	e.write.heads[t] = h
}

// appliedHead returns the head that the next append continues, or zero if there is no ledger. The caller must hold the
// write lock.
func (e *Engine) appliedHead(t id.Tenant) (head, error) {
	if h, ok := e.write.heads[t]; ok {
		return h, nil
	}
	h, found, err := e.readHead(t)
	if err == nil && found {
		e.cacheHead(t, h)
	}
	return h, err
}
