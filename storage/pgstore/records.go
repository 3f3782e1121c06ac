package pgstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Get implements storage.RecordStore.
func (e *Engine) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	found, err := e.Scan(ctx, t, kind, key, key+"\x00", 1)
	if err == nil && len(found) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return storage.Record{}, fmt.Errorf("get record: %w", err)
	}
	return found[0], nil
}

const scanSQL = `SELECT key, value, version FROM record WHERE org = $1 AND kind = $2 AND key >= $3 AND key < $4 ORDER BY key LIMIT $5`

const scanToEndSQL = `SELECT key, value, version FROM record WHERE org = $1 AND kind = $2 AND key >= $3 ORDER BY key LIMIT $4`

// Scan implements storage.RecordStore.
func (e *Engine) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("scan records: %w", err)
	}
	defer e.endCall()
	if limit <= 0 || end != "" && begin >= end {
		return nil, nil
	}
	found, err := e.scanRecords(ctx, t, kind, begin, end, limit)
	if unsettled := e.settled(ctx, t); unsettled != nil {
		err = unsettled
	}
	if err != nil {
		return nil, fmt.Errorf("scan records: %w", err)
	}
	return found, nil
}

func (e *Engine) scanRecords(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	sql, args := scanSQL, []any{int64(t), []byte(kind), []byte(begin), []byte(end), limit}
	if end == "" {
		sql, args = scanToEndSQL, []any{int64(t), []byte(kind), []byte(begin), limit}
	}
	rows, err := e.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, readError(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (storage.Record, error) {
		r := storage.Record{Kind: kind}
		var key []byte
		var version int64
		err := row.Scan(&key, &r.Value, &version)
		r.Key, r.Version = string(key), uint64(version)
		return r, err
	})
	return found, readError(err)
}

// Write implements storage.RecordStore. If ctx ends after the write has started, the write continues, and its outcome
// is unknown to the caller.
func (e *Engine) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	if err := e.writeChanges(ctx, t, changes); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	return nil
}

// writeChanges calls endCall when the write has ended, which may be after writeChanges has returned.
func (e *Engine) writeChanges(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	err := storage.ValidateChanges(changes)
	if err != nil || len(changes) == 0 {
		e.endCall()
		return err
	}
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		e.endCall()
		return readError(err)
	}
	changes = cloneChanges(changes)
	done := make(chan error, 1)
	go func() {
		defer e.endCall()
		defer conn.Release()
		done <- e.writeOn(context.WithoutCancel(ctx), conn.Conn(), t, changes)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return unknownOutcome(ctx.Err())
	}
}

// cloneChanges returns changes that share no memory with the caller's.
func cloneChanges(changes []storage.Change) []storage.Change {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Value = bytes.Clone(changes[i].Value)
	}
	return changes
}

func (e *Engine) writeOn(ctx context.Context, conn *pgx.Conn, t id.Tenant, changes []storage.Change) error {
	for range retries {
		if err := e.writeOnce(ctx, conn, t, changes); !errors.Is(err, errMet) {
			return err
		}
	}
	return unreachable(errMet)
}

func (e *Engine) writeOnce(ctx context.Context, conn *pgx.Conn, t id.Tenant, changes []storage.Change) (err error) {
	e.doubts.beginDoubt(t)
	defer func() { e.doubts.endDoubt(t, !errors.Is(err, storage.ErrUnknown)) }()
	err = transact(ctx, conn, func(tx pgx.Tx) error { return change(ctx, tx, t, changes) })
	cause, wasRefused := refusedError(err)
	var stale *storage.ItemError
	switch {
	case wasRefused && raced(cause):
		return errMet
	case wasRefused:
		return readError(cause)
	case errors.As(err, &stale):
		if err := passBarrier(ctx, conn); err != nil { // makes the state that stale depends on durable
			return err
		}
		return stale
	}
	return err
}
