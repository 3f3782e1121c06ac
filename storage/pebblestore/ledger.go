package pebblestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Head implements storage.Ledgers.
func (e *Engine) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if err := e.beginCall(ctx); err != nil {
		return storage.Head{}, fmt.Errorf("read head: %w", err)
	}
	defer e.endCall()
	h, found, err := e.readHead(t)
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	if err != nil {
		return storage.Head{}, fmt.Errorf("read head: %w", err)
	}
	return h.Head, nil
}

func (e *Engine) readHead(t id.Tenant) (h head, found bool, err error) {
	err = e.readValue(headKey(t), func(v []byte) (err error) {
		found = true
		h, err = parseStoredHead(v)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	return h, found, err
}

// readValue calls use with the value of key, or returns ErrNotFound. The value is valid only during the call.
func (e *Engine) readValue(key []byte, use func(value []byte) error) error {
	v, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return storage.ErrNotFound
	}
	if err != nil {
		return readError(err)
	}
	return errors.Join(use(v), closer.Close())
}

// Lookup implements storage.Ledgers.
func (e *Engine) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) (found []id.Index, err error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("look up names: %w", err)
	}
	defer e.endCall()
	known, search := e.names.View(t), nameSearch{engine: e}
	defer func() {
		if err = errors.Join(err, search.close()); err != nil {
			found, err = nil, fmt.Errorf("look up names: %w", err)
		}
	}()
	found = make([]id.Index, len(names))
	var key nameKey
	for i, n := range names {
		appendNameKey(key[:0], t, n)
		if known.Absent(key[:]) {
			found[i] = storage.NoIndex
		} else if found[i], err = search.index(&key); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Counters implements storage.Ledgers.
func (e *Engine) Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	defer e.endCall()
	h, _, err := e.readHead(t) // first: a counter that is moved out of the head has its own key from then on
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	values := make([]uint64, len(names))
	for i, name := range names {
		if values[i], err = e.readCounter(t, &h, name); err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
	}
	return values, nil
}

// readCounter returns a counter from h or from its own key, or 0 if it was never written.
func (e *Engine) readCounter(t id.Tenant, h *head, name string) (value uint64, err error) {
	if h.holding && h.held.Name == name {
		return h.held.Value, nil
	}
	err = e.readValue(appendCounterKey(nil, t, name), func(v []byte) (err error) {
		value, err = parseNumber(v)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	return value, err
}

// Tenants implements storage.Ledgers. It seeks from tenant to tenant.
func (e *Engine) Tenants(ctx context.Context) iter.Seq2[id.Tenant, error] {
	return func(yield func(id.Tenant, error) bool) {
		if err := e.listTenants(ctx, yield); err != nil {
			yield(0, fmt.Errorf("list tenants: %w", err))
		}
	}
}

func (e *Engine) listTenants(ctx context.Context, yield func(id.Tenant, error) bool) (err error) {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	defer e.endCall()
	it, err := e.db.NewIter(nil)
	if err != nil {
		return readError(err)
	}
	defer func() { err = cmp.Or(err, readError(it.Close())) }()
	for more := it.First(); more; {
		t, f, err := keyTenant(it.Key())
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if f == familyHead && !yield(t, nil) {
			return nil
		}
		if t == math.MaxUint64 {
			return nil
		}
		more = it.SeekGE(headKey(t + 1))
	}
	return readError(it.Error())
}

// Barrier implements storage.Ledgers. Every write that a read can have shown is before the barrier's record in the log.
// Open has synced the records of older logs. A read-only store shows only records from before Open, which are durable:
// Open has synced the logs, and tables are synced before a manifest names them. Nothing is added to such a store.
func (e *Engine) Barrier(ctx context.Context) error {
	if err := e.beginCall(ctx); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	defer e.endCall()
	if e.readOnly {
		return nil
	}
	c, err := e.applyBarrier()
	if err == nil {
		err = c.waitDurable()
	}
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

func (e *Engine) applyBarrier() (*commit, error) {
	e.write.Lock()
	defer e.write.Unlock()
	return e.writeBarrier()
}

// writeBarrier writes an empty record. The caller must hold the write lock.
func (e *Engine) writeBarrier() (*commit, error) {
	b := e.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return nil, err
	}
	return e.applyBatch(b, nil)
}

// seals is the number of records that sealLogTail writes. The sync offset of a record is the offset of the last sync or
// of the sync before it. One record may also fill a block, which adds no new offset. This leaves three different
// offsets, as many as package walcheck needs to prove a sync.
const seals = 5

// sealLogTail ends the log of a store that is being closed with empty records, each synced before the next one. Their
// offsets prove that every chunk before them was synced (package walcheck), so damage in the log of a stopped server is
// never mistaken for a torn end. The caller must hold the write lock, and all writes must be synced.
func (e *Engine) sealLogTail() error {
	for range seals {
		c, err := e.writeBarrier()
		if err == nil {
			err = c.waitDurable()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
