package pgstore

import (
	"context"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// findSQL finds any number of names of any tenants. The LIMIT in the subquery for each name forces the planner to look up
// each name in the index. Without it, the planner would read all keys of a table that has few idempotency keys.
const findSQL = `SELECT false, asked.n, e.idx
FROM unnest($1::int8[], $2::bytea[]) WITH ORDINALITY AS asked (org, name, n)
CROSS JOIN LATERAL (SELECT idx FROM event WHERE event.org = asked.org
	AND event.name = asked.name LIMIT 1) AS e
UNION ALL SELECT true, asked.n, e.idx
FROM unnest($3::int8[], $4::bytea[]) WITH ORDINALITY AS asked (org, name, n)
CROSS JOIN LATERAL (SELECT idx FROM event WHERE event.org = asked.org
	AND event.idempotency = asked.name LIMIT 1) AS e`

// findOneSQL is findSQL for one event of a tenant: its id, and its idempotency key or NULL.
const findOneSQL = `(SELECT false, 1::int8, idx FROM event WHERE org = $1::int8 AND name = $2::bytea LIMIT 1)
UNION ALL (SELECT true, 1::int8, idx FROM event WHERE org = $1::int8 AND idempotency = $3::bytea LIMIT 1)`

const (
	mostStatements = 2   // concurrent statements
	mostTogether   = 512 // calls per statement
)

// finder looks up events by their names. Concurrent calls share a statement: each new event is looked up once, and a
// separate statement for each would cost more than storing the event. There is no goroutine while no call waits. Find
// may be called concurrently.
type finder struct {
	database querier

	mu         sync.Mutex
	waiting    []*lookup
	statements int
}

// newFinder returns the finder of a database.
func newFinder(database querier) *finder { return &finder{database: database} }

// lookup is one call of Find.
type lookup struct {
	tenant id.Tenant
	names  []storage.DedupKey
	found  []id.Index
	err    error
	done   chan struct{}
}

// Find returns the index of the event of each name, or storage.NoIndex if there is none. If ctx ends, Find returns its
// error; the statement continues, because other calls may share it.
func (f *finder) Find(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	l := &lookup{tenant: t, names: names, done: make(chan struct{})}
	if f.addLookup(l) {
		go f.findWaiting()
	}
	select {
	case <-l.done:
		return l.found, l.err
	case <-ctx.Done():
		f.leave(l)
		return nil, ctx.Err()
	}
}

// findWaiting looks up the waiting names until no call waits.
func (f *finder) findWaiting() {
	for together := f.takeLookups(); together != nil; together = f.takeLookups() {
		err := findNames(context.Background(), f.database, together) // shared by several callers
		for _, l := range together {
			l.err = err
			close(l.done)
		}
	}
}

// addLookup queues a call. begin reports whether the caller must start findWaiting.
func (f *finder) addLookup(l *lookup) (begin bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, l)
	if f.statements == mostStatements {
		return false
	}
	f.statements++
	return true
}

// leave removes a call that waits for a statement.
func (f *finder) leave(l *lookup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.waiting, l); i >= 0 {
		f.waiting = slices.Delete(f.waiting, i, i+1)
	}
}

// takeLookups returns the calls that share the next statement. If no call waits, it returns nil, and findWaiting ends.
func (f *finder) takeLookups() []*lookup {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		f.statements--
		return nil
	}
	n := min(len(f.waiting), mostTogether)
	together := f.waiting[:n:n]
	f.waiting = f.waiting[n:]
	return together
}

// findIn is like finder.Find with a separate statement, for example in a transaction.
func findIn(ctx context.Context, q querier, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	l := &lookup{tenant: t, names: names}
	err := findNames(ctx, q, []*lookup{l})
	return l.found, err
}

// place is the position of a name in a lookup.
type place struct {
	lookup *lookup
	name   int
}

// nameQuery contains the columns of one kind of names, and the places of their results.
type nameQuery struct {
	orgs   []int64
	stored [][]byte
	places []place
}

func (q *nameQuery) add(l *lookup, name int, digest storage.KeyDigest) {
	q.orgs = append(q.orgs, int64(l.tenant))
	q.stored = append(q.stored, digest[:])
	q.places = append(q.places, place{l, name})
}

// findNames sets the results of all lookups.
func findNames(ctx context.Context, q querier, all []*lookup) error {
	var ids, keys nameQuery
	for _, l := range all {
		l.found = make([]id.Index, len(l.names))
		for i, n := range l.names {
			l.found[i] = storage.NoIndex
			if n.Idempotency {
				keys.add(l, i, n.IdempotencyDigest())
			} else {
				ids.add(l, i, storage.DigestIdempotencyKey(n.Text))
			}
		}
	}
	sql, args := findSQL, []any{ids.orgs, ids.stored, keys.orgs, keys.stored}
	if len(all) == 1 && len(ids.orgs) == 1 && len(keys.orgs) < 2 {
		sql, args = findOneSQL, []any{ids.orgs[0], ids.stored[0], slices.Concat(keys.stored...)}
	}
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var idempotency bool
	var n, index int64 // n counts from 1
	_, err = pgx.ForEachRow(rows, []any{&idempotency, &n, &index}, func() error {
		p := ids.places
		if idempotency {
			p = keys.places
		}
		p[n-1].lookup.found[p[n-1].name] = id.Index(index)
		return nil
	})
	return err
}
