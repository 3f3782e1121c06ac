package pgstore

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
)

// barriers is the number of rows that barriers are spread over.
const barriers = 64

const barrierSQL = `INSERT INTO barrier (org, slot, passed) VALUES (0, $1, 1)
ON CONFLICT (org, slot) DO UPDATE SET passed = barrier.passed + 1`

// barrierTries bounds the attempts of a barrier whose row is locked by another one, which holds it until its own commit
// is done, including the wait for a standby.
const barrierTries = 8

// passBarrier commits something. The commit follows everything that was visible before it in the server's log, and
// standbys confirm the log in order.
func passBarrier(ctx context.Context, conn *pgx.Conn) error {
	begins(conn)
	var err error
	for range barrierTries {
		_, err = conn.Exec(ctx, barrierSQL, int16(rand.IntN(barriers)))
		if cause, wasRefused := refusedError(err); !wasRefused || cause.Code != lockNotAvailable {
			break
		}
	}
	if err != nil {
		return readError(err)
	}
	if err := confirmed(conn); err != nil {
		return unreachable(err)
	}
	return nil
}

// Barrier implements storage.Ledgers. A read-only store cannot write a barrier. It needs none, because its commands
// compare stored data and sign nothing.
func (e *Engine) Barrier(ctx context.Context) error {
	if err := e.beginCall(ctx); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	defer e.endCall()
	if e.readOnly {
		return nil
	}
	if err := e.passBarrier(ctx); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

func (e *Engine) passBarrier(ctx context.Context) error {
	return e.onConnection(ctx, func(conn *pgx.Conn) error { return passBarrier(ctx, conn) })
}

// onConnection calls work with a connection of the pool.
func (e *Engine) onConnection(ctx context.Context, work func(*pgx.Conn) error) error {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return readError(err)
	}
	defer conn.Release()
	return work(conn.Conn())
}
