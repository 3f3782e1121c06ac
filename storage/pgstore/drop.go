package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// dropSQL deletes everything of an organization, table by table.
var dropSQL = [...]string{
	`DELETE FROM event WHERE org = $1`,
	`DELETE FROM segment WHERE org = $1`,
	`DELETE FROM tile WHERE org = $1`,
	`DELETE FROM counter WHERE org = $1`,
	`DELETE FROM record WHERE org = $1`,
	`DELETE FROM head WHERE org = $1`,
}

// Drop implements storage.Copier. Once the transaction has started, the end of ctx does not cancel it.
func (e *Engine) Drop(ctx context.Context, t id.Tenant, mark storage.Record) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	defer e.endCall()
	if err := e.dropTenant(ctx, t, mark); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	return nil
}

func (e *Engine) dropTenant(ctx context.Context, t id.Tenant, mark storage.Record) (err error) {
	if err := storage.ValidateDrop(t, mark); err != nil {
		return err
	}
	e.doubts.beginDoubt(t)
	defer func() { e.doubts.endDoubt(t, !errors.Is(err, storage.ErrUnknown)) }()
	err = e.onConnection(ctx, func(conn *pgx.Conn) error {
		ctx := context.WithoutCancel(ctx)
		return transact(ctx, conn, func(tx pgx.Tx) error { return dropAll(ctx, tx, t, mark) })
	})
	if cause, wasRefused := refusedError(err); wasRefused {
		return readError(cause)
	}
	return err
}

// dropAll locks the record that is the condition until everything is deleted.
func dropAll(ctx context.Context, tx pgx.Tx, t id.Tenant, mark storage.Record) error {
	stored, err := lockVersions(ctx, tx, t, []storage.Change{{Kind: mark.Kind, Key: mark.Key}})
	if err != nil {
		return err
	}
	if stored[recordName{mark.Kind, mark.Key}] != mark.Version {
		return storage.ErrStale
	}
	for _, sql := range dropSQL {
		if _, err := tx.Exec(ctx, sql, int64(t)); err != nil {
			return err
		}
	}
	return nil
}
