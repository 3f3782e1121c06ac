// Package pgstore is the storage engine on PostgreSQL 15 or newer
// (https://www.postgresql.org), for services of more than one machine.
//
// What always holds:
//
//   - The guard is in the statement: everything that an append writes hangs on
//     an UPDATE of the head that compares size, root, epoch and config version,
//     at READ COMMITTED. Several programs may work on one database; safety
//     depends on nothing else.
//   - One tenant's appends go through one connection, one after another, in the
//     order of the Append calls. What waits for different tenants goes as one
//     statement and one commit; when that fails, each tenant goes by itself.
//   - An append that is out is never cancelled. A lost connection and any warning
//     of the server while it commits (such as "canceling wait for synchronous
//     replication") are storage.ErrUnknown, never a success.
//   - Every connection is checked before its first use: a server in recovery, or
//     one whose settings could lose what it acknowledged, is refused.
//   - The tables have every column, constraint and unique index that the migrations
//     give them, and no trigger, or the store is not opened.
//   - Record reads pass a barrier while a write of this process, or what a new
//     connection may see, is not known to be durable. A commit wait that was
//     cancelled in another process can't be seen here: its record may be read
//     before it reaches the standby.
//   - A store that is open read-only writes nothing to the database, its schema
//     included, and answers every write with storage.ErrReadOnly. It passes no
//     barrier, so nothing may be signed or promised on what it shows.
//   - It never answers storage.ErrBroken: a server that fails a sync crashes
//     and recovers by itself, which is a lost connection here.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/door"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/document"
)

// Engine is a storage.Engine on a PostgreSQL database.
type Engine struct {
	logger   *slog.Logger
	readOnly bool
	pool     *pgxpool.Pool // for everything but appends
	lanes    []*lane
	codec    *document.Codec
	doubts   doubts
	lookups  lookups
	door     door.Door

	lost, split atomic.Uint64 // see Collector
}

var _ storage.Engine = (*Engine)(nil)

// Open connects, checks the server, and makes or migrates the tables unless
// o.ReadOnly is true. The tables lie in the first schema of the connection's
// search_path.
func Open(ctx context.Context, o Options) (*Engine, error) {
	o = o.withDefaults()
	c, err := newConnector(o)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	e := &Engine{logger: o.Logger, readOnly: o.ReadOnly, codec: document.NewCodec()}
	if err := e.open(ctx, o, c); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return e, nil
}

func (e *Engine) open(ctx context.Context, o Options, c *connector) error {
	s, err := c.inspect(ctx)
	if err != nil {
		return err
	}
	s.warn(o.Logger)
	schema := migrate
	if o.ReadOnly {
		schema = wantSchema
	}
	if err := schema(ctx, c.single()); err != nil {
		return err
	}
	if err := checkSchema(ctx, c.single()); err != nil {
		return err
	}
	if e.pool, err = c.openPool(ctx, o.Readers, e.doubts.raise); err != nil || o.ReadOnly {
		return err
	}
	for range o.Writers {
		e.lanes = append(e.lanes, e.startLane(c))
	}
	return nil
}

// Stream implements storage.Ledgers: each lane is one.
func (e *Engine) Stream(t id.Tenant) int { return int(uint64(t) % uint64(len(e.lanes))) }

// lane returns the lane of a tenant.
func (e *Engine) lane(t id.Tenant) *lane { return e.lanes[e.Stream(t)] }

// Close waits for what is under way and closes the connections.
func (e *Engine) Close() error {
	if !e.door.Close() {
		return errClosed
	}
	var errs []error
	for _, l := range e.lanes {
		errs = append(errs, l.close())
	}
	e.pool.Close()
	return errors.Join(errs...)
}

// errClosed answers every call after Close.
var errClosed = fmt.Errorf("store is closed: %w", storage.ErrUnavailable)

// enter begins a call, which ends with leave.
func (e *Engine) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !e.door.Enter() {
		return errClosed
	}
	return nil
}

func (e *Engine) leave() { e.door.Leave() }

// errReadOnly answers every write to a store that is open read-only.
var errReadOnly = fmt.Errorf("the store is open read-only: %w", storage.ErrReadOnly)

// enterWrite is enter for a call that writes.
func (e *Engine) enterWrite(ctx context.Context) error {
	if err := e.enter(ctx); err != nil {
		return err
	}
	if e.readOnly {
		e.leave()
		return errReadOnly
	}
	return nil
}
