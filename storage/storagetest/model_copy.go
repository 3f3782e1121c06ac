package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// IdempotencyKeys implements storage.Ledgers.
func (m *Model) IdempotencyKeys(ctx context.Context, t id.Tenant, begin, end id.Index) iter.Seq2[storage.IndexedKey, error] {
	return func(yield func(storage.IndexedKey, error) bool) {
		all, err := m.keys(ctx, t)
		if err != nil {
			yield(storage.IndexedKey{}, err)
			return
		}
		for _, k := range all {
			if k.Index >= begin && k.Index < end && !yield(k, nil) {
				return
			}
		}
	}
}

func (m *Model) keys(ctx context.Context, t id.Tenant) (all []storage.IndexedKey, err error) {
	if err := m.beginCall(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	l := m.applied.ledgers[t]
	if l == nil {
		return nil, fmt.Errorf("read idempotency keys: %w", storage.ErrNotFound)
	}
	for n, at := range l.names {
		if n.Idempotency {
			all = append(all, storage.IndexedKey{Digest: n.Digest, Index: at})
		}
	}
	return all, nil
}

// Partition implements storage.RecordStore.
func (m *Model) Partition(ctx context.Context, t id.Tenant) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		all, err := m.partition(ctx, t)
		if err != nil {
			yield(storage.Record{}, err)
			return
		}
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *Model) partition(ctx context.Context, t id.Tenant) (all []storage.Record, err error) {
	if err := m.beginCall(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for name, r := range m.durable.records {
		if name.tenant == t {
			r.Value = cloneBytes(r.Value)
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b storage.Record) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return all, nil
}
