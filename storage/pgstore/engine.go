// Package pgstore is the storage engine on PostgreSQL 15 or newer (https://www.postgresql.org), for
// services of more than one machine.
//
// Invariants:
//
//   - The guard is in the statement: all writes of an append depend on an UPDATE of the head that
//     compares size, root, epoch and config version, at READ COMMITTED. Several programs may work
//     on one database; safety depends on nothing else.
//   - The guard also compares the newest schema that the program knows with the lowest one that may
//     write. A program that is too old sees that in a second, too, and then answers no call any more.
//   - The appends of one tenant go through one connection, one after another, in the order of the
//     Append calls. Waiting appends of different tenants go as one statement and one commit. When
//     that fails, each tenant goes by itself.
//   - A write waits for a lock of another session for lockTimeout at most. After that it was not
//     applied, and the locked tenant gets storage.ErrUnavailable.
//   - An append that is out is never cancelled. A lost connection and any warning of the server
//     during the commit (such as "canceling wait for synchronous replication") are
//     storage.ErrUnknown, never a success.
//   - Every connection is checked before its first use. A server in recovery is refused, and so is
//     a server whose settings could lose acknowledged data.
//   - The tables have every column, constraint and unique index that the migrations give them, and
//     no trigger, or the store is not opened.
//   - Record reads pass a barrier while a write of this process, or data visible to a new
//     connection, is not known to be durable. A commit wait that was cancelled in another process
//     can't be seen here: its record may be read before it reaches the standby.
//   - A store that is open read-only writes nothing to the database, its schema included, and
//     answers every write with storage.ErrReadOnly. It passes no barrier, so callers MUST NOT sign
//     or promise anything on its reads.
//   - It never answers storage.ErrBroken: a server that fails a sync crashes and recovers by
//     itself, which is a lost connection here.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
)

// Engine is a storage.Engine on a PostgreSQL database.
type Engine struct {
	logger   *slog.Logger
	readOnly bool
	pool     *pgxpool.Pool // for everything but appends
	queues   []*connectionQueue
	side     *connectionQueue // of tenants that are aside; it connects when there is one
	aside    aside
	out      atomic.Int64 // shares that queues have
	codec    *documentCodec
	connect  *connector
	doubts   doubts
	names    *finder
	door     syncs.InFlight
	fence    *fence

	lost, split atomic.Uint64 // see Collector
}

var _ storage.Engine = (*Engine)(nil)

// Open connects, checks the server, and makes or migrates the tables unless o.ReadOnly is true. The tables lie in the
// first schema of the connection's search_path.
func Open(ctx context.Context, o Options) (*Engine, error) {
	o = o.withDefaults()
	c, err := newConnector(o)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	e := &Engine{logger: o.Logger, readOnly: o.ReadOnly, codec: newDocumentCodec(), connect: c}
	if err := e.openPools(ctx, o, c); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return e, nil
}

func (e *Engine) openPools(ctx context.Context, o Options, c *connector) error {
	s, err := c.inspectServer(ctx)
	if err != nil {
		return err
	}
	s.warnSettings(o.Logger)
	program, err := schema.New(o.Version, o.Keys, o.Logger)
	if err != nil {
		return err
	}
	bring := program.Bring
	if o.ReadOnly {
		bring = program.Check
	}
	if err := bring(ctx, c.single()); err != nil {
		return err
	}
	if e.pool, err = c.openPool(ctx, o.Readers, e.doubts.raiseDoubt); err != nil {
		return err
	}
	e.names = newFinder(e.pool)
	e.fence = newFence(program, e.pool, o.OnOutdated)
	if o.ReadOnly {
		return nil
	}
	for range o.Writers {
		e.queues = append(e.queues, e.startQueue(c, false))
	}
	e.side = e.startQueue(c, true)
	return nil
}

// Synchronous reports whether the server waits for a standby before it acknowledges
// (synchronous_standby_names is set). The answer is that of the connection that was opened last.
// Without that wait, a fail-over may lose acknowledged data.
func (e *Engine) Synchronous() bool { return e.connect.synchronous.Load() }

// closeTime bounds the wait of Close for calls and appends under way.
const closeTime = 10 * time.Second

// Close waits for calls and appends under way and closes the connections. When the server does not
// answer for closeTime, Close returns an error that counts the work still out. That work is not
// cancelled and ends with the process.
func (e *Engine) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- e.closePools() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTime):
		return fmt.Errorf("close store: PostgreSQL does not answer: appends out on %d connections, other work on %d: %w",
			e.out.Load(), e.pool.Stat().AcquiredConns(), storage.ErrUnavailable)
	}
}

func (e *Engine) closePools() error {
	if !e.door.Close() {
		return errClosed
	}
	var errs []error
	for _, l := range e.queues {
		errs = append(errs, l.closeQueue())
	}
	if e.side != nil { // a store that is open read-only has no queues
		errs = append(errs, e.side.closeQueue())
	}
	e.fence.close()
	e.pool.Close()
	return errors.Join(errs...)
}

// errClosed answers every call after Close.
var errClosed = fmt.Errorf("store is closed: %w", storage.ErrUnavailable)

// beginCall begins a call, which ends with leave.
func (e *Engine) beginCall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.fence.refusal(); err != nil {
		return err
	}
	if !e.door.Begin() {
		return errClosed
	}
	return nil
}

func (e *Engine) endCall() { e.door.End() }

// errReadOnly answers every write to a store that is open read-only.
var errReadOnly = fmt.Errorf("the store is open read-only: %w", storage.ErrReadOnly)

// enterWrite is beginCall for a call that writes.
func (e *Engine) enterWrite(ctx context.Context) error {
	if err := e.enterAppend(ctx); err != nil {
		return err
	}
	if err := e.fence.pass(ctx); err != nil {
		e.endCall()
		return err
	}
	return nil
}

// enterAppend is enterWrite for a call whose statement has the fence in its guard.
func (e *Engine) enterAppend(ctx context.Context) error {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	if e.readOnly {
		e.endCall()
		return errReadOnly
	}
	return nil
}
