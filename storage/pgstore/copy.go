package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Numbers of keys and records that are read at a time.
const (
	keysPage      = 4096
	partitionPage = 256
)

const keysSQL = `SELECT idx, idempotency FROM event WHERE org = $1 AND idempotency > $2 AND idx >= $3 AND idx < $4 ORDER BY idempotency LIMIT $5`

// IdempotencyKeys implements storage.Copier. The keys are ordered by their digests, so it reads all keys of the tenant.
func (e *Engine) IdempotencyKeys(ctx context.Context, t id.Tenant, begin, end id.Index) iter.Seq2[storage.IndexedKey, error] {
	return func(yield func(storage.IndexedKey, error) bool) {
		if err := e.readKeys(ctx, t, begin, end, yield); err != nil {
			yield(storage.IndexedKey{}, fmt.Errorf("read idempotency keys: %w", err))
		}
	}
}

func (e *Engine) readKeys(ctx context.Context, t id.Tenant, begin, end id.Index, yield func(storage.IndexedKey, error) bool) error {
	head, err := e.Head(ctx, t)
	if err != nil {
		return err
	}
	end = min(end, head.Size)
	for after := []byte{}; begin < end; { // no key is empty, so this precedes all keys
		page, err := e.keysPage(ctx, t, after, begin, end)
		if err != nil {
			return err
		}
		for i := range page {
			if !yield(page[i], nil) {
				return nil
			}
		}
		if len(page) < keysPage {
			return nil
		}
		after = page[len(page)-1].Digest[:]
	}
	return nil
}

func (e *Engine) keysPage(ctx context.Context, t id.Tenant, after []byte, begin, end id.Index) ([]storage.IndexedKey, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, err
	}
	defer e.endCall()
	rows, err := e.pool.Query(ctx, keysSQL, int64(t), after, int64(begin), int64(end), keysPage)
	if err != nil {
		return nil, readError(err)
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k storage.IndexedKey, err error) {
		var index int64
		var digest []byte
		err = row.Scan(&index, &digest)
		if err == nil && (copy(k.Digest[:], digest) != len(digest) || len(digest) != len(k.Digest)) {
			err = corruptValue("idempotency key")
		}
		k.Index = id.Index(index)
		return k, err
	})
	return page, readError(err)
}

const partitionSQL = `SELECT kind, key, value, version FROM record WHERE org = $1 AND (kind, key) > ($2, $3) ORDER BY kind, key LIMIT $4`

// Partition implements storage.Copier.
func (e *Engine) Partition(ctx context.Context, t id.Tenant) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		var after storage.Record // no kind is empty, so this precedes all records
		for {
			page, err := e.partitionPage(ctx, t, after)
			if err != nil {
				yield(storage.Record{}, fmt.Errorf("read partition: %w", err))
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if len(page) < partitionPage {
				return
			}
			after = page[len(page)-1]
		}
	}
}

func (e *Engine) partitionPage(ctx context.Context, t id.Tenant, after storage.Record) ([]storage.Record, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, err
	}
	defer e.endCall()
	rows, err := e.pool.Query(ctx, partitionSQL, int64(t), []byte(after.Kind), []byte(after.Key), partitionPage)
	if err != nil {
		return nil, readError(err)
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r storage.Record, err error) {
		var kind, key []byte
		var version int64
		err = row.Scan(&kind, &key, &r.Value, &version)
		r.Kind, r.Key, r.Version = storage.Kind(kind), string(key), uint64(version)
		return r, err
	})
	return page, errors.Join(readError(err), e.settled(ctx, t))
}
