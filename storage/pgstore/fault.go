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

// refusedError returns the server's error when it is one that ended the transaction
// and left the connection: nothing was applied.
func refusedError(err error) (*pgconn.PgError, bool) {
	var p *pgconn.PgError
	if errors.As(err, &p) && p.SeverityUnlocalized == "ERROR" {
		return p, true
	}
	return nil, false
}

// raced reports whether the server gave a transaction up in favour of another.
func raced(p *pgconn.PgError) bool {
	return p.Code == serializationFailure || p.Code == deadlockDetected
}

// unreachable is for errors of a server that can't be used at the moment.
func unreachable(err error) error { return fmt.Errorf("%w: %w", storage.ErrUnavailable, err) }

// readError translates an error of a read, and of a write that was certainly not applied.
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

// passing reports whether errors of a class say something about the moment and not about the statement.
func passing(class string) bool {
	switch class {
	case "08", // connection
		"25", // read-only transaction: the server is not the primary any more
		"40", // rolled back in favour of another
		"53", // out of disk, memory, connections
		"55", // locked
		"57", // an operator's intervention
		"58", // the system under the server
		"XX": // errors without a class of their own, such as EFBIG
		return true
	}
	return false
}

// unknownOutcome is the answer of a write whose commit was not confirmed.
func unknownOutcome(cause error) error { return fmt.Errorf("%w: %w", storage.ErrUnknown, cause) }
