package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Append implements storage.Appender. A batch with erasures writes a mark for each bundle that contains one of the
// erased events, including bundles that are not archived yet: their texts may already be on their way to an object.
func (e *Engine) Append(batches []storage.Batch) storage.Pending {
	var erasing []id.Tenant // of each batch with erasures; otherwise 0
	for i := range batches {
		if !batches[i].Erases() || batches[i].Validate() != nil { // the inner engine rejects invalid batches
			continue
		}
		if erasing == nil {
			erasing, batches = make([]id.Tenant, len(batches)), slices.Clone(batches)
		}
		erasing[i] = batches[i].Tenant
		batches[i].Changes = slices.Concat(batches[i].Changes, e.marksFor(&batches[i]))
	}
	p := e.inner.Append(batches)
	if erasing == nil {
		return p
	}
	return &pending{Pending: p, engine: e, erasing: erasing}
}

// marksFor returns the changes that mark the bundles from which a batch erases envelopes.
func (e *Engine) marksFor(b *storage.Batch) (changes []storage.Change) {
	marked := make(map[id.Index]struct{})
	for i := range b.Events {
		for _, r := range b.Events[i].Erases {
			for n := r.Begin / e.options.width; n <= (r.End-1)/e.options.width; n++ {
				marked[n] = struct{}{}
			}
		}
	}
	for n := range marked {
		changes = append(changes, storage.Change{Kind: kindMark, Key: keyOf(n), Value: []byte(markValue),
			If: storage.AnyVersion})
	}
	return changes
}

// pending notifies the worker of tenants with erasures.
type pending struct {
	storage.Pending
	engine  *Engine
	erasing []id.Tenant
}

// Wait implements storage.Pending.
func (p *pending) Wait() []error {
	results := p.Pending.Wait()
	for i, err := range results {
		if err == nil && p.erasing[i] != 0 {
			p.engine.noteErasure(p.erasing[i])
		}
	}
	return results
}

// noteErasure makes the worker check a tenant's marks.
func (e *Engine) noteErasure(t id.Tenant) {
	e.noteDirty(t, time.Now())
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// ErasuresWaiting reports whether an object may still contain an envelope of a tenant that was erased before the call.
// If so, it also wakes the worker, which may be in another process.
func (e *Engine) ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error) {
	waiting, err := e.erasuresWaiting(ctx, t)
	if err != nil || !waiting {
		return waiting, err
	}
	e.noteErasure(t)
	_, err = e.inner.Get(ctx, id.Service, kindWaiting, tenantName(t))
	if errors.Is(err, storage.ErrNotFound) {
		err = e.inner.Write(ctx, id.Service, []storage.Change{{Kind: kindWaiting, Key: tenantName(t),
			Value: []byte(markValue), If: storage.AnyVersion}})
	}
	return true, err
}

// takeWaiting schedules the tenants for which any process has found waiting erasures, and removes their records.
func (e *Engine) takeWaiting(ctx context.Context) error {
	found, err := e.inner.Scan(ctx, id.Service, kindWaiting, "", "", marksPage)
	if err != nil || len(found) == 0 {
		return err
	}
	var taken []storage.Change
	for _, r := range found {
		t, err := strconv.ParseUint(r.Key, 16, 64)
		if err != nil {
			return fmt.Errorf("read %s: %w: %w", kindWaiting, storage.ErrCorrupt, err)
		}
		e.noteDirty(id.Tenant(t), time.Now())
		taken = append(taken, storage.Change{Kind: kindWaiting, Key: r.Key, If: storage.AnyVersion})
	}
	return e.inner.Write(ctx, id.Service, taken)
}

func (e *Engine) erasuresWaiting(ctx context.Context, t id.Tenant) (bool, error) {
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil {
		return false, err
	}
	if reached.Value.Writing {
		next, err := e.marks.Get(ctx, t, keyOf(reached.Value.Next))
		if err != nil || next.Exists() && !next.Value.Clean {
			return true, err
		}
	}
	if reached.Value.Next == 0 {
		return false, nil
	}
	marks, err := e.inner.Scan(ctx, t, kindMark, "", keyOf(reached.Value.Next), 1)
	return len(marks) > 0, err
}
