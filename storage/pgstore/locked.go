package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentledger/agentledger/id"
)

// lockTimeout is how long a statement waits for a lock that another session holds, in the form of
// the setting. A statement that it ends was not applied.
//
// It covers the wait for locks alone, so it can't cut the wait of a commit for its standby. If its
// signal arrives that late, the server warns, and any warning is storage.ErrUnknown. It is longer
// than PostgreSQL's deadlock_timeout (1 s), so that a deadlock is reported as a deadlock.
const lockTimeout = "2s"

// errLocked: another session holds a lock that an append needs.
var errLocked = errors.New("locked by another session")

func lockError(cause *pgconn.PgError) error {
	return unreachable(fmt.Errorf("%w: %w", errLocked, cause))
}

// freeSQL returns which of some heads no other session holds, without waiting.
const freeSQL = `SELECT h.org FROM unnest($1::int8[]) AS asked (org)
CROSS JOIN LATERAL (SELECT org FROM head WHERE head.org = asked.org FOR UPDATE SKIP LOCKED) AS h`

// refuseLocked answers the parts whose heads another session holds, and returns the others. After an
// error, no part is answered.
func (l *connectionQueue) refuseLocked(parts []part) (free []part, err error) {
	ctx := context.Background()
	conn, err := l.ready(ctx)
	if err != nil {
		return parts, err
	}
	heads, err := freeHeads(ctx, conn, parts)
	if err != nil {
		if conn.IsClosed() {
			l.drop()
		}
		return parts, unreachable(err)
	}
	for _, p := range parts {
		if heads[p.Tenant] || p.creates() {
			free = append(free, p)
		} else {
			p.answer(unreachable(errLocked))
		}
	}
	return free, nil
}

// freeHeads looks in a transaction that leaves nothing behind, so that no commit has to wait for a standby.
func freeHeads(ctx context.Context, conn *pgx.Conn, parts []part) (map[id.Tenant]bool, error) {
	orgs := make([]int64, len(parts))
	for i, p := range parts {
		orgs[i] = int64(p.Tenant)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, freeSQL, orgs)
	free := make(map[id.Tenant]bool, len(parts))
	if err == nil {
		var org int64
		_, err = pgx.ForEachRow(rows, []any{&org}, func() error { free[id.Tenant(org)] = true; return nil })
	}
	return free, errors.Join(err, tx.Rollback(ctx))
}

// leaveLocked answers the parts of a share whose heads are still locked. It is for the side queue.
func (l *connectionQueue) leaveLocked(s *share) {
	all := slices.Concat(s.together, s.alone)
	free, err := l.refuseLocked(all)
	if err != nil {
		answer(free, err)
		free = nil
	}
	if len(free) == len(all) {
		return
	}
	s.together, s.alone = nil, nil
	for _, p := range free {
		s.appendPart(p)
	}
	if len(s.together) > 0 {
		s.arguments = l.engine.argumentsOf(s.together)
	}
}

// remember moves tenants to the side queue and back, by the results of parts that went through a queue.
func (e *Engine) remember(l *connectionQueue, parts []part) {
	for _, p := range parts {
		isLocked := errors.Is(*p.result, errLocked)
		switch {
		case l.side:
			e.aside.ended(p.Tenant, isLocked)
		case isLocked:
			e.aside.setAside(p.Tenant)
		}
	}
}

// aside are the tenants that another session had locked during an append. Their appends go through
// the side queue until one meets no lock. The other tenants of their own queue therefore don't wait
// for the same lock again and again.
//
// The order of a tenant's appends holds when it changes its queue. It goes aside when one of its appends was refused.
// Later appends in its old queue were built on the refused one, so the guard refuses those too, whenever they come.
// The tenant comes back when it has no append out in the side queue.
type aside struct {
	some atomic.Bool // there are any
	mu   sync.Mutex
	out  map[id.Tenant]int // appends in the side queue
}

func (a *aside) isSetAside(t id.Tenant) bool {
	if !a.some.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, there := a.out[t]
	return there
}

// begin reports whether an append of t goes through the side queue; then it is out until ended.
func (a *aside) begin(t id.Tenant) bool {
	if !a.some.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.out[t]; !there {
		return false
	}
	a.out[t]++
	return true
}

func (a *aside) setAside(t id.Tenant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out == nil {
		a.out = make(map[id.Tenant]int)
	}
	a.out[t] += 0
	a.some.Store(true)
}

func (a *aside) ended(t id.Tenant, isLocked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out[t]--; a.out[t] == 0 && !isLocked {
		delete(a.out, t)
		a.some.Store(len(a.out) > 0)
	}
}

// Stream implements storage.Ledgers: each queue is one stream. A store that is open read-only has no
// stream and refuses every append.
func (e *Engine) Stream(t id.Tenant) int {
	if e.aside.isSetAside(t) || len(e.queues) == 0 {
		return len(e.queues)
	}
	return int(uint64(t) % uint64(len(e.queues)))
}

// queueOf returns the queue of an append of a tenant that begins now.
func (e *Engine) queueOf(t id.Tenant) *connectionQueue {
	if e.aside.begin(t) {
		return e.side
	}
	return e.queues[uint64(t)%uint64(len(e.queues))]
}
