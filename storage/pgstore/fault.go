package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/storage"
)

func corruptValue(what string) error { return fmt.Errorf("%s: %w", what, storage.ErrCorrupt) }

// SQLSTATE codes (PostgreSQL documentation, appendix A).
const (
	uniqueViolation      = "23505"
	lockNotAvailable     = "55P03"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	dataCorrupted        = "XX001"
	indexCorrupted       = "XX002"
)

// refusedError returns the server's error if it ended only the transaction and not the connection: nothing was applied.
func refusedError(err error) (*pgconn.PgError, bool) {
	var p *pgconn.PgError
	if errors.As(err, &p) && p.SeverityUnlocalized == "ERROR" {
		return p, true
	}
	return nil, false
}

// raced reports whether the server aborted a transaction in favor of another one.
func raced(p *pgconn.PgError) bool {
	return p.Code == serializationFailure || p.Code == deadlockDetected
}

// unreachable wraps an error of a server that cannot be used at the moment.
func unreachable(err error) error { return fmt.Errorf("%w: %w", storage.ErrUnavailable, err) }

// readError translates an error of a read, or of a write that was certainly not applied.
func readError(err error) error {
	var p *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrCorrupt),
		errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrConflict):
		return err
	case errors.Is(err, pgx.ErrNoRows):
		return storage.ErrNotFound
	case !errors.As(err, &p):
		return unreachable(err) // the connection failed
	case p.Code == dataCorrupted || p.Code == indexCorrupted:
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	case passing(p.Code[:2]) || p.SeverityUnlocalized != "ERROR":
		return unreachable(err)
	}
	return err
}

// passing reports whether errors of a class are temporary, rather than caused by the statement.
func passing(class string) bool {
	switch class {
	case "08", // connection
		"25", // read-only transaction: the server is no longer the primary
		"40", // rolled back in favor of another transaction
		"53", // out of disk, memory, connections
		"55", // locked
		"57", // an operator's intervention
		"58", // system error outside of PostgreSQL
		"XX": // errors without a class of their own, such as EFBIG
		return true
	}
	return false
}

// unknownOutcome wraps the cause of a write whose commit was not confirmed.
func unknownOutcome(cause error) error { return fmt.Errorf("%w: %w", storage.ErrUnknown, cause) }
