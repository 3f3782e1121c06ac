package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage/pgstore/dial"
)

const (
	// stepLockTimeout is how long a step waits for a lock, as a value of the setting. Appends that need the same table
	// queue behind the step in the meantime.
	stepLockTimeout = "100ms"
	// lockedFor bounds the retries of a step whose tables are in use.
	lockedFor = 10 * time.Minute
)

// SQLSTATE codes (PostgreSQL documentation, appendix A).
const (
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// isLocked reports whether the server aborted a statement because of another session.
func isLocked(err error) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && (p.Code == lockNotAvailable || p.Code == deadlockDetected)
}

// untilFree retries work until no other session is in the way.
func (p *Program) untilFree(ctx context.Context, work func() error) error {
	ctx, cancel := context.WithTimeout(ctx, lockedFor)
	defer cancel()
	for {
		err := work()
		if !isLocked(err) {
			return err
		}
		if syncs.Sleep(ctx, p.pauses.locked) != nil {
			return fmt.Errorf("other sessions hold the tables: %w", err)
		}
	}
}

// stepUpTo applies the steps up to a version that no program has applied, each in a transaction.
func (p *Program) stepUpTo(ctx context.Context, config *pgx.ConnConfig, version int64) (err error) {
	config = config.Copy()
	usual := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if usual != nil {
			if err := usual(ctx, conn); err != nil {
				return err
			}
		}
		return dial.Settings(map[string]string{"lock_timeout": stepLockTimeout})(ctx, conn)
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	provider, err := p.provider(db)
	if err != nil {
		return err
	}
	return p.untilFree(ctx, func() error {
		_, err := provider.UpTo(ctx, version)
		return err
	})
}

// Times of the lock by which programs take turns. The lock is a row that is renewed, so the turn of a dead program
// expires soon. Steps do not rely on it: if two programs apply a step at the same time, the second one fails
// completely.
const (
	turnRenewals = 5 // during a lease
	turnRetry    = 200 * time.Millisecond
	turnTries    = 3000
)

// isTurnTaken reports whether it is another program's turn. In that case, the lock's error wraps no other error.
// Without a server, the lock is tried only once, so that a start fails soon.
func isTurnTaken(err error) bool { return errors.Unwrap(err) == nil || isLocked(err) }

func (p *Program) provider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresTableLocker(lock.WithTableLeaseDuration(p.pauses.lease),
		lock.WithTableHeartbeatInterval(p.pauses.lease/turnRenewals), lock.WithTableLockTimeout(turnRetry, turnTries),
		lock.WithTableUnlockTimeout(turnRetry, turnRenewals), lock.WithTableRetryPolicy(isTurnTaken))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, p.known.files, goose.WithLocker(locker),
		goose.WithDisableGlobalRegistry(true))
}
