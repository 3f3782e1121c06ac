package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/storage"
)

// retries is how often a transaction that met another one's new record is done again. Each time, the
// other transaction has made progress.
const retries = 16

// errMet: a record came to be while the transaction ran.
var errMet = errors.New("met a record that is being made")

// zeroHeadSQL lets a new ledger begin at the zero head, which the guard of its first batch expects.
// No reader sees the zero head, because the same transaction replaces it or is rolled back.
const zeroHeadSQL = `INSERT INTO head (org, size, last_received, epoch, config_version, root, last) VALUES ($1, 0, 0, 0, 0, $2, $2)
ON CONFLICT (org) DO NOTHING`

// alone appends one part in a transaction of several statements, for batches that make a ledger or change records.
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
		return applyAlone(ctx, tx, l.engine.codec, p, l.engine.argumentsOf([]part{p}))
	})
	cause, wasRefused := refusedError(err)
	var stale *storage.ItemError
	switch {
	case err == nil, errors.Is(err, storage.ErrConflict), errors.Is(err, errMet), errors.Is(err, storage.ErrCorrupt):
		return err
	case wasRefused:
		return l.refusal(ctx, conn, p, cause)
	case errors.As(err, &stale):
		return l.rests(ctx, conn, stale)
	}
	return l.lost(err)
}

// Schema returns the number of the newest schema that the program knows.
func (e *Engine) Schema() int64 { return e.fence.known }

// Transact is transact for tables beside the ledgers. A statement that the server refused is an error of the store.
func (e *Engine) Transact(ctx context.Context, work func(pgx.Tx) error) error {
	return e.writeBeside(ctx, func(conn *pgx.Conn) error { return transact(ctx, conn, work) })
}

// Send is Transact for statements that do not depend on each other. They go to the server together, which begins and
// ends their transaction by itself. After an error of a function that takes an answer they may have been applied.
func (e *Engine) Send(ctx context.Context, statements *pgx.Batch) error {
	return e.writeBeside(ctx, func(conn *pgx.Conn) error {
		begins(conn)
		return outcome(conn, conn.SendBatch(ctx, statements).Close())
	})
}

func (e *Engine) writeBeside(ctx context.Context, write func(*pgx.Conn) error) error {
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

// transact runs work in a transaction. An error of work means that nothing was applied: it is returned as it is, or
// as storage.ErrUnavailable when the connection is gone. From the COMMIT on, a lost connection and a warning are
// storage.ErrUnknown.
func transact(ctx context.Context, conn *pgx.Conn, work func(pgx.Tx) error) error {
	begins(conn)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return unreachable(err)
	}
	if err := work(tx); err != nil {
		_ = tx.Rollback(ctx) // on a connection that is gone, the server does it
		if conn.IsClosed() {
			return unreachable(err)
		}
		return err
	}
	return outcome(conn, tx.Commit(ctx))
}

// outcome returns what a commit came to, which ended with err.
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

// applyAlone does the work of a transaction, in the contract's order.
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

// refusal says what a part that the server refused comes to. It was not applied.
func (l *connectionQueue) refusal(ctx context.Context, conn *pgx.Conn, p part, cause *pgconn.PgError) error {
	switch {
	case raced(cause):
		return fmt.Errorf("%w: %w", storage.ErrConflict, cause)
	case cause.Code == lockNotAvailable:
		return lockError(cause)
	case cause.Code != uniqueViolation:
		return readError(cause)
	case cause.ConstraintName != "event_name" && cause.ConstraintName != "event_idempotency":
		return fmt.Errorf("%w: %w", storage.ErrConflict, cause) // another one has the index
	}
	err := duplicate(ctx, conn, p.Batch)
	var named *storage.ItemError
	if errors.As(err, &named) {
		return l.rests(ctx, conn, named)
	}
	return readError(err)
}

// rests returns a refusal once the data behind it is durable. The barrier is needed because the
// refusal rests on a read, and a read may show a commit whose wait was cancelled.
func (l *connectionQueue) rests(ctx context.Context, conn *pgx.Conn, refusal *storage.ItemError) error {
	if err := passBarrier(ctx, conn); err != nil {
		return err
	}
	return refusal
}

// duplicate names the first event of a batch whose name is taken, in the store or by an event before it. When there
// is none, or the head is not the expected one any more, it is a conflict.
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
