package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// eraseEnvelopes rewrites the rows of the events that a batch erases. The transaction must hold the lock of the head.
func eraseEnvelopes(ctx context.Context, tx pgx.Tx, codec *documentCodec, b *storage.Batch) error {
	t := textRewriter{SQL: eventsSQL(storage.FieldEnvelope, eventsAt, segmentsAt), Org: int64(b.Tenant)}
	return t.EraseEnvelopes(ctx, tx, codec, b.ErasedBy())
}

const lockHeadSQL = `SELECT size FROM head WHERE org = $1 FOR UPDATE`

// DropTexts removes the record and envelope of the stored events [begin, end), at most storage.MaxErased, and returns
// when the removal is durable. All other fields of the events stay. Events without texts are left unchanged. The bytes
// stay in dead rows until VACUUM. Once the transaction has started, the end of ctx does not cancel it.
func (e *Engine) DropTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("drop texts: %w", err)
	}
	defer e.endCall()
	if err := e.dropTexts(ctx, t, begin, end); err != nil {
		return fmt.Errorf("drop texts: %w", err)
	}
	return nil
}

func (e *Engine) dropTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return readError(err)
	}
	defer conn.Release()
	e.doubts.beginDoubt(t)
	ctx = context.WithoutCancel(ctx)
	err = transact(ctx, conn.Conn(), func(tx pgx.Tx) error { return dropTextsIn(ctx, tx, e.codec, t, begin, end) })
	e.doubts.endDoubt(t, !errors.Is(err, storage.ErrUnknown))
	if cause, wasRefused := refusedError(err); wasRefused {
		return readError(cause)
	}
	return err
}

// dropTextsIn locks the head, so that no append writes the same rows.
func dropTextsIn(ctx context.Context, tx pgx.Tx, codec *documentCodec, t id.Tenant, begin, end id.Index) error {
	var size int64
	if err := tx.QueryRow(ctx, lockHeadSQL, int64(t)).Scan(&size); err != nil {
		return readError(err)
	}
	if begin > end || end > id.Index(size) || end-begin > storage.MaxErased {
		return fmt.Errorf("events [%d, %d) of %d", begin, end, size)
	}
	texts := textRewriter{SQL: eventsSQL(storage.FieldEnvelope, eventsAt, segmentsAt), Org: int64(t)}
	return texts.Drop(ctx, tx, codec, begin, end)
}
