package pebblestore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// IdempotencyKeys implements storage.Copier. The keys are ordered by their digests, so it reads all keys of the tenant.
func (e *Engine) IdempotencyKeys(ctx context.Context, t id.Tenant, begin, end id.Index) iter.Seq2[storage.IndexedKey, error] {
	return func(yield func(storage.IndexedKey, error) bool) {
		head, err := e.Head(ctx, t)
		if err == nil {
			end = min(end, head.Size)
			err = e.each(ctx, t, familyIdempotency, func(key, value []byte) (bool, error) {
				index, err := parseNumber(value)
				if err != nil || len(key) != nameLen {
					return false, errors.Join(err, corruptValue("idempotency key"))
				}
				if i := id.Index(index); i < begin || i >= end {
					return true, nil
				}
				return yield(storage.IndexedKey{Digest: storage.KeyDigest(key), Index: id.Index(index)}, nil), nil
			})
		}
		if err != nil {
			yield(storage.IndexedKey{}, fmt.Errorf("read idempotency keys: %w", err))
		}
	}
}

// Partition implements storage.Copier. Like Scan, it waits for the sync of the records that it returns.
func (e *Engine) Partition(ctx context.Context, t id.Tenant) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		lower := appendPrefix(nil, t, familyStored)
		if err := e.partition(ctx, lower, prefixEnd(lower), yield); err != nil {
			yield(storage.Record{}, fmt.Errorf("read partition: %w", err))
		}
	}
}

// partitionPage is the number of records that are read before each wait.
const partitionPage = 256

func (e *Engine) partition(ctx context.Context, lower, upper []byte, yield func(storage.Record, error) bool) error {
	for {
		page, err := e.partitionPage(ctx, lower, upper)
		if err != nil {
			return err
		}
		for i := range page {
			if !yield(page[i], nil) {
				return nil
			}
		}
		if len(page) < partitionPage {
			return nil
		}
		last := &page[len(page)-1]
		lower = append(lower[:prefixLen], last.Kind...)
		lower = append(append(append(lower, 0), last.Key...), 0)
	}
}

func (e *Engine) partitionPage(ctx context.Context, lower, upper []byte) ([]storage.Record, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, err
	}
	defer e.endCall()
	page, err := e.scanRecords(ctx, lower, upper, partitionPage)
	if unsettled := e.unsynced.settleRange(ctx, lower, upper); unsettled != nil {
		err = unsettled
	}
	return page, err
}

// each calls visit with the keys (without their prefix) and values of a family until visit returns more = false.
func (e *Engine) each(ctx context.Context, t id.Tenant, f family, visit func(key, value []byte) (more bool, err error)) (err error) {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	defer e.endCall()
	lower := appendPrefix(nil, t, f)
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(lower)})
	if err != nil {
		return readError(err)
	}
	defer func() { err = cmp.Or(err, readError(it.Close())) }()
	for more := it.First(); more; more = it.Next() {
		value, err := it.ValueAndErr()
		if err = errors.Join(readError(err), ctx.Err()); err != nil {
			return err
		}
		if more, err := visit(it.Key()[prefixLen:], value); err != nil || !more {
			return err
		}
	}
	return readError(it.Error())
}

// prefixEnd returns the smallest key after all keys of a tenant's family.
func prefixEnd(prefix []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(prefix)), prefix[prefixLen-1]+1)
}
