package transfer_test

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// faulty is a store whose reads return wrong data.
type faulty struct {
	*storagetest.Model
	event  func(*storage.Event)
	record func(*storage.Record) error
	keys   func(*storage.IndexedKey)
	tile   func([]byte)
	lookup func([]id.Index)
	count  func([]uint64)
}

func (f *faulty) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for e, err := range f.Model.Events(ctx, t, begin, end, parts) {
			if f.event != nil {
				f.event(&e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (f *faulty) Partition(ctx context.Context, t id.Tenant) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for r, err := range f.Model.Partition(ctx, t) {
			if f.record != nil && err == nil {
				err = f.record(&r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (f *faulty) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	r, err := f.Model.Get(ctx, t, kind, key)
	if f.record != nil && err == nil && t == id.Service {
		err = f.record(&r)
	}
	return r, err
}

func (f *faulty) IdempotencyKeys(ctx context.Context, t id.Tenant, begin, end id.Index) iter.Seq2[storage.IndexedKey, error] {
	return func(yield func(storage.IndexedKey, error) bool) {
		for k, err := range f.Model.IdempotencyKeys(ctx, t, begin, end) {
			if f.keys != nil {
				f.keys(&k)
			}
			if !yield(k, err) {
				return
			}
		}
	}
}

func (f *faulty) TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error) {
	hashes, err := f.Model.TileHashes(ctx, t, level, index, begin, end)
	if f.tile != nil && err == nil {
		f.tile(hashes)
	}
	return hashes, err
}

func (f *faulty) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	found, err := f.Model.Lookup(ctx, t, names)
	if f.lookup != nil {
		f.lookup(found)
	}
	return found, err
}

func (f *faulty) Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error) {
	found, err := f.Model.Counters(ctx, t, names)
	if f.count != nil {
		f.count(found)
	}
	return found, err
}
