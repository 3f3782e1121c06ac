package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/storage"
)

const (
	// idleTime is how long a connection may be idle before it is pinged: an append that is sent on a dead connection
	// has an unknown outcome.
	idleTime = time.Second
	// pingTime bounds a ping.
	pingTime = 5 * time.Second
	// partTime bounds closing a connection, which sends a message to the server.
	partTime = time.Second
)

// connectionQueue is one connection for appends, and the goroutine that owns it. It starts a share when the previous
// share has its results. So a part that failed can be retried before a later part of the same tenant.
type connectionQueue struct {
	engine    *Engine
	connector *connector
	side      bool // for tenants whose heads are locked by another session
	queue     shares
	ended     chan error

	conn *pgx.Conn // nil if not connected
	used time.Time // when conn was last used
}

func (e *Engine) startQueue(c *connector, side bool) *connectionQueue {
	l := &connectionQueue{engine: e, connector: c, side: side, ended: make(chan error, 1)}
	l.queue.more.L = &l.queue.mu
	go l.runQueue()
	return l
}

func (l *connectionQueue) runQueue() {
	for s := l.queue.takeWaiting(); s != nil; s = l.queue.takeWaiting() {
		all := *s
		l.servePending(s)
		l.engine.fence.explain(all.together, all.alone)
		l.engine.updateAside(l, all.together)
		l.engine.updateAside(l, all.alone)
		all.done()
	}
	var err error
	if l.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), partTime)
		defer cancel()
		err = l.conn.Close(ctx)
	}
	l.ended <- err
}

// closeQueue closes a queue without users, after its waiting shares are done.
func (l *connectionQueue) closeQueue() error {
	l.queue.close()
	return <-l.ended
}

// servePending appends the parts that share a statement, then the parts that need separate transactions.
func (l *connectionQueue) servePending(s *share) {
	if len(s.together)+len(s.alone) == 0 { // of connectAhead
		_, _ = l.ready(context.Background()) // the next append reports the error
		return
	}
	if l.side {
		l.leaveLocked(s)
	}
	if len(s.together) > 0 {
		l.together(s.together, s.arguments)
	}
	for _, p := range s.alone {
		p.answer(l.alone(p))
	}
}

// together appends parts with one statement, which is one commit. If the server rejects it, nothing was applied, and
// each part is retried separately.
func (l *connectionQueue) together(parts []part, args arguments) {
	ctx := context.Background()
	conn, err := l.ready(ctx)
	if err != nil {
		answer(parts, err)
		return
	}
	begins(conn)
	moved, err := move(ctx, conn, args)
	if err == nil {
		err = confirmed(conn)
	}
	cause, wasRefused := refusedError(err)
	switch {
	case err == nil:
		for _, p := range parts {
			p.answer(moved.result(p))
		}
	case wasRefused && len(parts) > 1:
		l.engine.split.Add(1)
		l.split(parts, cause)
	case wasRefused:
		parts[0].answer(l.refusal(ctx, conn, parts[0], cause))
	default:
		answer(parts, l.lost(err))
	}
}

// split retries the parts of a rejected statement. Parts whose heads another session has locked are rejected without
// waiting again, so that the others wait for a lock only once.
func (l *connectionQueue) split(parts []part, cause *pgconn.PgError) {
	if cause.Code == lockNotAvailable {
		free, err := l.refuseLocked(parts)
		if err != nil {
			answer(free, err)
			return
		}
		if 0 < len(free) && len(free) < len(parts) {
			l.together(free, l.engine.argumentsFor(free))
			return
		}
		parts = free // empty, or the locked row is not a head
	}
	for i := range parts {
		l.together(parts[i:i+1], l.engine.argumentsFor(parts[i:i+1]))
	}
}

// ready returns a connection that responded recently.
func (l *connectionQueue) ready(ctx context.Context) (*pgx.Conn, error) {
	if l.conn != nil && (l.conn.IsClosed() || time.Since(l.used) > idleTime && !l.responds(ctx)) {
		l.drop()
	}
	if l.conn == nil {
		conn, err := l.connector.connectAndCheck(ctx)
		if err != nil {
			return nil, err
		}
		l.conn = conn
	}
	l.used = time.Now()
	return l.conn, nil
}

// responds pings the server.
func (l *connectionQueue) responds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return l.conn.Ping(ctx) == nil
}

// lost drops the connection and returns the error for an append that got no response, unless err is already such an
// error.
func (l *connectionQueue) lost(err error) error {
	l.engine.lost.Add(1)
	l.engine.logger.Warn("lost a connection to PostgreSQL during an append", "err", err)
	l.drop()
	switch {
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrUnknown):
		return err
	case pgconn.SafeToRetry(err): // nothing was sent
		return unreachable(err)
	}
	return unknownOutcome(err)
}

// drop closes a connection. It also resets the pool, because the same cause has likely broken the pool's connections.
func (l *connectionQueue) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), partTime)
	defer cancel()
	_ = l.conn.Close(ctx) // nothing depends on the result
	l.conn = nil
	l.engine.pool.Reset()
}

// result returns the result of a part that shared a statement with others.
func (m moved) result(p part) error {
	if !m[p.Tenant] {
		return storage.ErrConflict
	}
	return nil
}
