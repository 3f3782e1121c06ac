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

// lockTimeout is how long a statement waits for a lock of another session, as a value of the setting. A statement that
// it ends was not applied.
//
// It applies only to lock waits, so it cannot end the wait of a commit for its standby. If its signal arrives that
// late, the server warns, and any warning is storage.ErrUnknown. It is longer than PostgreSQL's deadlock_timeout (1 s),
// so that a deadlock is reported as a deadlock.
const lockTimeout = "2s"

// errLocked is returned if another session holds a lock that an append needs.
var errLocked = errors.New("locked by another session")

func lockError(cause *pgconn.PgError) error {
	return unreachable(fmt.Errorf("%w: %w", errLocked, cause))
}

// freeSQL returns, without waiting, the heads that no other session has locked.
const freeSQL = `SELECT h.org FROM unnest($1::int8[]) AS asked (org)
CROSS JOIN LATERAL (SELECT org FROM head WHERE head.org = asked.org FOR UPDATE SKIP LOCKED) AS h`

// refuseLocked sets the results of the parts whose heads another session has locked, and returns the other parts. If it
// returns an error, no result is set.
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

// freeHeads locks the heads in a transaction that is rolled back, so that no commit has to wait for a standby.
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

// leaveLocked sets the results of the parts of a share whose heads are still locked. It is for the side queue.
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
		s.arguments = l.engine.argumentsFor(s.together)
	}
}

// updateAside moves tenants to the side queue and back, depending on the results of parts that went through queue l.
func (e *Engine) updateAside(l *connectionQueue, parts []part) {
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

// aside contains the tenants whose heads another session had locked during an append. Their appends go through the side
// queue until one finds no lock, so that the other tenants of their own queue do not wait for the same lock again and
// again.
//
// The order of a tenant's appends is preserved when it changes its queue. It is set aside when one of its appends was
// rejected. Later appends in its old queue were built on the rejected one, so the guard rejects them too, whenever they
// are executed. The tenant returns to its own queue when it has no append in flight in the side queue.
type aside struct {
	some atomic.Bool // whether there are any
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

// begin reports whether an append of t goes through the side queue. If so, ended must be called for it.
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

// Stream implements storage.Ledgers. Each queue is one stream. A read-only store has no stream and rejects every
// append.
func (e *Engine) Stream(t id.Tenant) int {
	if e.aside.isSetAside(t) || len(e.queues) == 0 {
		return len(e.queues)
	}
	return int(uint64(t) % uint64(len(e.queues)))
}

// queueFor returns the queue for a new append of a tenant.
func (e *Engine) queueFor(t id.Tenant) *connectionQueue {
	if e.aside.begin(t) {
		return e.side
	}
	return e.queues[uint64(t)%uint64(len(e.queues))]
}
