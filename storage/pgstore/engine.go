// Package pgstore is the storage engine on PostgreSQL 15 or newer (https://www.postgresql.org), for services with more than
// one machine. It hides the schema, the encoding of rows and the connections behind storage.Engine.
//
// Invariants:
//
//   - The guard is in the statement: all writes of an append depend on an UPDATE of the head that compares size, root, epoch
//     and config version, at READ COMMITTED. Several programs may use one database; safety depends on nothing else.
//   - The guard also compares the newest schema that the program knows with the lowest one that may write. A program that
//     is too old also detects this within a second, and then every call fails.
//   - The appends of a tenant go through one connection, one after another, in the order of the Append calls. Waiting
//     appends of different tenants share one statement and one commit. If that fails, each tenant is retried separately.
//   - A write waits at most lockTimeout for a lock of another session. After that, it was not applied, and the locked tenant
//     gets storage.ErrUnavailable.
//   - An append in flight is never canceled. A lost connection, and any warning of the server during the commit (such as
//     "canceling wait for synchronous replication"), is storage.ErrUnknown, never a success.
//   - Every connection is checked before its first use. A server in recovery is rejected, and so is a server whose settings
//     could lose acknowledged data.
//   - The store opens only if its tables have all columns, constraints and unique indexes of the migrations, and no trigger.
//   - Record reads pass a barrier while a write of this process, or data visible to a new connection, is not known to be
//     durable. A canceled commit wait of another process cannot be detected: its record may be read before it reaches the
//     standby.
//   - A read-only store writes nothing to the database, including its schema, and every write returns storage.ErrReadOnly.
//     It passes no barrier, so callers must not sign or promise anything based on its reads.
//   - It never returns storage.ErrBroken: a server that fails a sync crashes and recovers, which is a lost connection here.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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
	pool     *pgxpool.Pool // for everything except appends
	queues   []*connectionQueue
	side     *connectionQueue // for the tenants in aside; connects when first needed
	aside    aside
	out      atomic.Int64 // shares in flight
	codec    *documentCodec
	connect  *connector
	doubts   doubts
	names    *finder
	calls    syncs.InFlight
	fence    *fence

	lost, split atomic.Uint64 // see Collector
}

var _ storage.Engine = (*Engine)(nil)

// Open connects, checks the server, and creates or migrates the tables unless o.ReadOnly is set. The tables are in the
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
	if e.pool, err = c.openPool(ctx, o, e.doubts.raiseDoubt); err != nil {
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
	if o.ConnectAhead {
		e.connectAhead(ctx)
	}
	return nil
}

const (
	// minReaders is the number of connections of the pool that are kept open with Options.ConnectAhead.
	minReaders = 8
	// aheadTime bounds how long Open waits for connections that no call needs yet.
	aheadTime = 2 * time.Second
)

// connectAhead opens the connections for appends and minReaders connections of the pool, so that the first calls do not
// wait for them. It returns when they are open or after aheadTime. Errors are ignored: calls report them later.
func (e *Engine) connectAhead(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	var group sync.WaitGroup
	for _, l := range e.queues {
		group.Add(1)
		l.queue.addWaiting(&share{done: group.Done})
	}
	for range minReaders {
		conn, err := e.pool.Acquire(ctx)
		if err != nil {
			break
		}
		defer conn.Release()
	}
	_ = syncs.Within(ctx, func() error { group.Wait(); return nil })
}

// Synchronous reports whether the server waits for a standby before it acknowledges a commit (synchronous_standby_names
// is set), according to the latest connection. Without that wait, a fail-over may lose acknowledged data.
func (e *Engine) Synchronous() bool { return e.connect.synchronous.Load() }

// closeTime bounds how long Close waits for calls and appends in flight.
const closeTime = 10 * time.Second

// Close waits for calls and appends in flight and closes the connections. If the server does not respond within
// closeTime, Close returns an error with the number of connections still in use. Their work is not canceled and ends
// with the process.
func (e *Engine) Close() error {
	closed := make(chan error, 1)
	go func() { closed <- e.closePools() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTime):
		return fmt.Errorf("close store: PostgreSQL does not respond: appends in flight on %d connections, other work on %d: %w",
			e.out.Load(), e.pool.Stat().AcquiredConns(), storage.ErrUnavailable)
	}
}

func (e *Engine) closePools() error {
	if !e.calls.Close() {
		return errClosed
	}
	var errs []error
	for _, l := range e.queues {
		errs = append(errs, l.closeQueue())
	}
	if e.side != nil { // a read-only store has no queues
		errs = append(errs, e.side.closeQueue())
	}
	e.fence.close()
	e.pool.Close()
	return errors.Join(errs...)
}

// errClosed is returned by every call after Close.
var errClosed = fmt.Errorf("store is closed: %w", storage.ErrUnavailable)

// beginCall starts a call, which must end with endCall.
func (e *Engine) beginCall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.fence.refusal(); err != nil {
		return err
	}
	if !e.calls.Begin() {
		return errClosed
	}
	return nil
}

func (e *Engine) endCall() { e.calls.End() }

// errReadOnly is returned by every write to a read-only store.
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

// enterAppend is enterWrite for a call whose statement includes the fence in its guard.
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
