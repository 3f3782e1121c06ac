package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/storage"
)

// retries bounds the attempts of a transaction that meets a record of another transaction. Each time, the other
// transaction has made progress.
const retries = 16

// errMet is returned if another transaction creates a record in the meantime.
var errMet = errors.New("another transaction is creating the same record")

// zeroHeadSQL creates the zero head of a new ledger, which the guard of its first batch expects. No reader sees the
// zero head, because the same transaction replaces it or is rolled back.
const zeroHeadSQL = `INSERT INTO head (org, size, last_received, epoch, config_version, root, last) VALUES ($1, 0, 0, 0, 0, $2, $2)
ON CONFLICT (org) DO NOTHING`

// alone appends one part in a transaction of several statements, for a batch that creates a ledger, changes records or
// erases.
func (l *connectionQueue) alone(p part) error {
	for range retries {
		if err := l.tryAlone(p); !errors.Is(err, errMet) {
			return err
		}
	}
	return unreachable(errMet)
}

func (l *connectionQueue) tryAlone(p part) (err error) {
	ctx := context.Background()
	conn, err := l.ready(ctx)
	if err != nil {
		return err
	}
	l.engine.doubts.beginDoubt(p.Tenant)
	defer func() { l.engine.doubts.endDoubt(p.Tenant, !errors.Is(err, storage.ErrUnknown)) }()
	err = transact(ctx, conn, func(tx pgx.Tx) error {
		return applyAlone(ctx, tx, l.engine.codec, p, l.engine.argumentsFor([]part{p}))
	})
	cause, wasRefused := refusedError(err)
	var stale *storage.ItemError
	switch {
	case err == nil, errors.Is(err, storage.ErrConflict), errors.Is(err, errMet), errors.Is(err, storage.ErrCorrupt):
		return err
	case wasRefused:
		return l.refusal(ctx, conn, p, cause)
	case errors.As(err, &stale):
		return l.afterBarrier(ctx, conn, stale)
	}
	return l.lost(err)
}

// Schema returns the number of the newest schema that the program knows.
func (e *Engine) Schema() int64 { return e.fence.known }

// Transact is like transact, for tables other than those of ledgers. A statement that the server rejected is returned
// as a storage error.
func (e *Engine) Transact(ctx context.Context, work func(pgx.Tx) error) error {
	return e.writeOther(ctx, func(conn *pgx.Conn) error { return transact(ctx, conn, work) })
}

// Send is like Transact, for statements that do not depend on each other. They are sent together, and the server runs
// them in one transaction. If a callback of a statement returns an error, the transaction may have been applied.
func (e *Engine) Send(ctx context.Context, statements *pgx.Batch) error {
	return e.writeOther(ctx, func(conn *pgx.Conn) error {
		begins(conn)
		return outcome(conn, conn.SendBatch(ctx, statements).Close())
	})
}

func (e *Engine) writeOther(ctx context.Context, write func(*pgx.Conn) error) error {
	if err := e.enterWrite(ctx); err != nil {
		return err
	}
	defer e.endCall()
	err := e.onConnection(ctx, write)
	if cause, wasRefused := refusedError(err); wasRefused {
		return readError(cause)
	}
	return err
}

// transact runs work in a transaction. If work returns an error, nothing was applied, and transact returns that error,
// or storage.ErrUnavailable if the connection is lost. From the COMMIT on, a lost connection and a warning are
// storage.ErrUnknown.
func transact(ctx context.Context, conn *pgx.Conn, work func(pgx.Tx) error) error {
	begins(conn)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return unreachable(err)
	}
	if err := work(tx); err != nil {
		_ = tx.Rollback(ctx) // if the connection is lost, the server rolls back
		if conn.IsClosed() {
			return unreachable(err)
		}
		return err
	}
	return outcome(conn, tx.Commit(ctx))
}

// outcome returns the result of a commit that returned err.
func outcome(conn *pgx.Conn, err error) error {
	if _, wasRefused := refusedError(err); wasRefused {
		return err
	}
	if err == nil {
		err = confirmed(conn)
	}
	if err != nil {
		return unknownOutcome(err)
	}
	return nil
}

// applyAlone does the work of a transaction, in the order of the contract.
func applyAlone(ctx context.Context, tx pgx.Tx, codec *documentCodec, p part, args arguments) error {
	if p.creates() {
		var zero storage.Head
		if _, err := tx.Exec(ctx, zeroHeadSQL, int64(p.Tenant), zero.Root[:]); err != nil {
			return err
		}
	}
	moved, err := move(ctx, tx.Conn(), args)
	if err != nil {
		return err
	}
	if err := moved.result(p); err != nil {
		return err
	}
	if err := eraseEnvelopes(ctx, tx, codec, p.Batch); err != nil {
		return err
	}
	return change(ctx, tx, p.Tenant, p.Changes)
}

// refusal returns the result of a part that the server rejected. It was not applied.
func (l *connectionQueue) refusal(ctx context.Context, conn *pgx.Conn, p part, cause *pgconn.PgError) error {
	switch {
	case raced(cause):
		return fmt.Errorf("%w: %w", storage.ErrConflict, cause)
	case cause.Code == lockNotAvailable:
		return lockError(cause)
	case cause.Code != uniqueViolation:
		return readError(cause)
	case cause.ConstraintName != "event_name" && cause.ConstraintName != "event_idempotency":
		return fmt.Errorf("%w: %w", storage.ErrConflict, cause) // another event has the index
	}
	err := duplicate(ctx, conn, p.Batch)
	var named *storage.ItemError
	if errors.As(err, &named) {
		return l.afterBarrier(ctx, conn, named)
	}
	return readError(err)
}

// afterBarrier returns a rejection once the data that it depends on is durable. The barrier is necessary because a read may
// show a commit whose wait was canceled.
func (l *connectionQueue) afterBarrier(ctx context.Context, conn *pgx.Conn, refusal *storage.ItemError) error {
	if err := passBarrier(ctx, conn); err != nil {
		return err
	}
	return refusal
}

// duplicate returns an ItemError for the first event of a batch whose name is taken, in the store or by an earlier
// event. If there is none, or the head is no longer the expected one, it returns ErrConflict.
func duplicate(ctx context.Context, q querier, b *storage.Batch) error {
	head, _, err := readHead(ctx, q, b.Tenant)
	if err != nil {
		return err
	}
	if !head.Continues(b.Expect) {
		return storage.ErrConflict
	}
	var names []storage.DedupKey
	var items []int
	for i := range b.Events {
		e := &b.Events[i]
		for n := range e.DedupKeys {
			names, items = append(names, n), append(items, e.Item)
		}
	}
	found, err := findIn(ctx, q, b.Tenant, names)
	if err != nil {
		return readError(err)
	}
	taken := make(map[storage.DedupKey]bool, len(names))
	for i, n := range names {
		if found[i] != storage.NoIndex || taken[n] {
			return &storage.ItemError{Item: items[i], Err: storage.ErrDuplicate}
		}
		taken[n] = true
	}
	return storage.ErrConflict
}
