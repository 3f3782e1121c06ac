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
	// idleTime is how long a connection may rest before it is asked whether it still
	// stands: an append that goes into a dead one has an unknown outcome.
	idleTime = time.Second
	// pingTime bounds that question.
	pingTime = 5 * time.Second
	// partTime bounds the close of a connection, which sends a message to the server.
	partTime = time.Second
)

// connectionQueue is one connection that appends, and the goroutine that owns it. It begins a share when the one
// before it has its answers. A part that fails can then be done again before a later part of its tenant.
type connectionQueue struct {
	engine    *Engine
	connector *connector
	side      bool // of tenants that are locked by another session
	queue     shares
	ended     chan error

	conn *pgx.Conn // nil when there is none
	used time.Time // when conn answered last
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
		l.engine.remember(l, all.together)
		l.engine.remember(l, all.alone)
		all.landed()
	}
	var err error
	if l.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), partTime)
		defer cancel()
		err = l.conn.Close(ctx)
	}
	l.ended <- err
}

// closeQueue closes a queue that has no users any more, after its waiting shares are done.
func (l *connectionQueue) closeQueue() error {
	l.queue.close()
	return <-l.ended
}

// servePending appends the parts that go together, then the parts that need a transaction of their own.
func (l *connectionQueue) servePending(s *share) {
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

// together appends parts as one statement, which is one commit. One that the
// server refuses was not applied: then each part goes by itself.
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

// split appends parts of which a joint statement was refused. Those that another session has locked are refused
// without another wait, so that the others wait for a lock once.
func (l *connectionQueue) split(parts []part, cause *pgconn.PgError) {
	if cause.Code == lockNotAvailable {
		free, err := l.refuseLocked(parts)
		if err != nil {
			answer(free, err)
			return
		}
		if 0 < len(free) && len(free) < len(parts) {
			l.together(free, l.engine.argumentsOf(free))
			return
		}
		parts = free // empty, or the locked row is not a head
	}
	for i := range parts {
		l.together(parts[i:i+1], l.engine.argumentsOf(parts[i:i+1]))
	}
}

// ready returns a connection that stood a moment ago.
func (l *connectionQueue) ready(ctx context.Context) (*pgx.Conn, error) {
	if l.conn != nil && (l.conn.IsClosed() || time.Since(l.used) > idleTime && !l.stands(ctx)) {
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

// stands asks the server for a sign of life.
func (l *connectionQueue) stands(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return l.conn.Ping(ctx) == nil
}

// lost says what an append that got no answer of the server comes to, unless err
// says it already, and gives the connection up.
func (l *connectionQueue) lost(err error) error {
	l.engine.lost.Add(1)
	l.engine.logger.Warn("a connection to PostgreSQL was lost in an append", "err", err)
	l.drop()
	switch {
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrUnknown):
		return err
	case pgconn.SafeToRetry(err): // nothing was sent
		return unreachable(err)
	}
	return unknownOutcome(err)
}

// drop gives a connection up. It resets the pool too, because the same cause has likely ended the pool's connections.
func (l *connectionQueue) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), partTime)
	defer cancel()
	_ = l.conn.Close(ctx) // nothing depends on how it ends
	l.conn = nil
	l.engine.pool.Reset()
}

// result says what became of a part that went with others.
func (m moved) result(p part) error {
	if !m[p.Tenant] {
		return storage.ErrConflict
	}
	return nil
}
