package pgstore

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// lookupSQL has a LIMIT in the subquery for each name, so that the planner can choose nothing but a lookup for each
// name. Without it, the planner would read all keys of a table that has few idempotency keys.
const lookupSQL = `SELECT false, asked.n, e.idx
FROM unnest($1::int8[], $2::bytea[]) WITH ORDINALITY AS asked (org, name, n)
CROSS JOIN LATERAL (SELECT idx FROM event WHERE event.org = asked.org AND event.name = asked.name LIMIT 1) AS e
UNION ALL SELECT true, asked.n, e.idx
FROM unnest($3::int8[], $4::bytea[]) WITH ORDINALITY AS asked (org, name, n)
CROSS JOIN LATERAL (SELECT idx FROM event WHERE event.org = asked.org AND event.idempotency = asked.name LIMIT 1) AS e`

// Look-ups that wait for each other share a statement: each new event is looked up
// once, and a statement of its own would cost more than storing it.
const (
	lookupStatements = 2   // under way at a time
	lookupsTogether  = 512 // in one statement
)

// lookup is one call of Lookup.
type lookup struct {
	tenant id.Tenant
	names  []storage.DedupKey
	found  []id.Index
	err    error
	done   chan struct{}
}

// lookups are the calls that wait. There is no goroutine while there are none.
type lookups struct {
	mu         sync.Mutex
	waiting    []*lookup
	statements int
}

// Lookup implements storage.Ledgers.
func (e *Engine) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("look up names: %w", err)
	}
	defer e.endCall()
	if len(names) == 0 {
		return nil, nil
	}
	l := &lookup{tenant: t, names: names, done: make(chan struct{})}
	if e.lookups.addLookup(l) {
		go e.lookUpNames()
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		e.lookups.leave(l)
		return nil, fmt.Errorf("look up names: %w", ctx.Err())
	}
	if l.err != nil {
		return nil, fmt.Errorf("look up names: %w", l.err)
	}
	return l.found, nil
}

// lookUpNames looks up the waiting names until no call waits.
func (e *Engine) lookUpNames() {
	for together := e.lookups.takeLookups(); together != nil; together = e.lookups.takeLookups() {
		err := findNames(context.Background(), e.pool, together) // of no caller alone
		for _, l := range together {
			l.err = err
			close(l.done)
		}
	}
}

// addLookup queues a call. begin tells the caller to start lookUpNames.
func (w *lookups) addLookup(l *lookup) (begin bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, l)
	if w.statements == lookupStatements {
		return false
	}
	w.statements++
	return true
}

// leave takes back a call that waits for a statement.
func (w *lookups) leave(l *lookup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, l); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
}

// takeLookups returns the calls that share the next statement. It returns nil when no call waits,
// and lookUpNames then ends.
func (w *lookups) takeLookups() []*lookup {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.statements--
		return nil
	}
	n := min(len(w.waiting), lookupsTogether)
	together := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	return together
}

// place is a name of a lookup.
type place struct {
	lookup *lookup
	name   int
}

// asked are the columns of one kind of names, and where their answers go.
type asked struct {
	orgs   []int64
	stored [][]byte
	places []place
}

func (a *asked) appendQuestion(l *lookup, name int, digest storage.KeyDigest) {
	a.orgs = append(a.orgs, int64(l.tenant))
	a.stored = append(a.stored, digest[:])
	a.places = append(a.places, place{l, name})
}

// findNames sets the result of each lookup.
func findNames(ctx context.Context, q querier, all []*lookup) error {
	var ids, keys asked
	for _, l := range all {
		l.found = make([]id.Index, len(l.names))
		for i, n := range l.names {
			l.found[i] = storage.NoIndex
			if n.Idempotency {
				keys.appendQuestion(l, i, n.IdempotencyDigest())
			} else {
				ids.appendQuestion(l, i, storage.DigestIdempotencyKey(n.Text))
			}
		}
	}
	rows, err := q.Query(ctx, lookupSQL, ids.orgs, ids.stored, keys.orgs, keys.stored)
	if err != nil {
		return readError(err)
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
	return readError(err)
}
