package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// appendSQL is an append of any number of tenants. A head that is not the
// expected one moves nothing of its tenant. At READ COMMITTED an UPDATE that has
// to wait for another one compares again what that one left.
//
// "IS TRUE" keeps the planner from joining with moved, whose size it can't know:
// the organizations become a hash table that each row is looked up in.
const appendSQL = `
WITH part AS (
	SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[], $6::int8[], $7::int8[], $8::int8[], $9::int8[], $10::bytea[], $11::bytea[])
		AS p (org, was_size, was_epoch, was_config, was_root, size, last_received, epoch, config_version, root, last)
), moved AS (
	UPDATE head SET size = p.size, last_received = p.last_received, epoch = p.epoch,
		config_version = p.config_version, root = p.root, last = p.last
	FROM part p
	WHERE head.org = p.org AND head.size = p.was_size AND head.epoch = p.was_epoch
		AND head.config_version = p.was_config AND head.root = p.was_root
	RETURNING head.org
), events AS (
	INSERT INTO event (org, idx, received_at, effective, disclosure, prev, record_hash, id, idempotency, agent, trace, tool, action_kind, record, envelope)
	SELECT * FROM unnest($12::int8[], $13::int8[], $14::int8[], $15::int2[], $16::int2[], $17::bytea[], $18::bytea[],
			$19::bytea[], $20::bytea[], $21::bytea[], $22::bytea[], $23::bytea[], $24::bytea[], $25::bytea[], $26::bytea[])
		AS e (org, idx, received_at, effective, disclosure, prev, record_hash, id, idempotency, agent, trace, tool, action_kind, record, envelope)
	WHERE (e.org IN (SELECT org FROM moved)) IS TRUE
), tiles AS (
	INSERT INTO tile (org, level, idx, root, hashes)
	SELECT * FROM unnest($27::int8[], $28::int2[], $29::int8[], $30::bytea[], $31::bytea[]) AS t (org, level, idx, root, hashes)
	WHERE (t.org IN (SELECT org FROM moved)) IS TRUE
	ON CONFLICT (org, level, idx) DO UPDATE SET root = excluded.root, hashes = excluded.hashes
), counters AS (
	INSERT INTO counter (org, value, name)
	SELECT * FROM unnest($32::int8[], $33::int8[], $34::bytea[]) AS c (org, value, name)
	WHERE (c.org IN (SELECT org FROM moved)) IS TRUE
	ON CONFLICT (org, name) DO UPDATE SET value = excluded.value
)
SELECT org FROM moved`

// querier is a connection, a transaction or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// moved is the tenants whose heads moved.
type moved map[id.Tenant]bool

// move applies the parts whose heads are the expected ones.
func move(ctx context.Context, q querier, parts []part) (moved, error) {
	rows, err := q.Query(ctx, appendSQL, argumentsOf(parts)...)
	if err != nil {
		return nil, err
	}
	m := make(moved, len(parts))
	var org int64
	_, err = pgx.ForEachRow(rows, []any{&org}, func() error {
		m[id.Tenant(org)] = true
		return nil
	})
	return m, err
}

// argumentsOf returns the arguments of appendSQL: columns, in its order. They
// share memory with the batches.
func argumentsOf(parts []part) []any {
	events, tiles, counters := 0, 0, 0
	for _, p := range parts {
		events, tiles, counters = events+len(p.Events), tiles+len(p.Tiles), counters+len(p.Counters)
	}
	h, e, t, c := newHeads(len(parts)), newEvents(events), newTiles(tiles), newCounters(counters)
	for _, p := range parts {
		h.add(p.Batch)
		for i := range p.Events {
			e.add(p.Tenant, &p.Events[i])
		}
		t.add(p.Batch)
		c.add(p.Batch)
	}
	args := make([]any, 0, 34)
	args = append(args, h.org, h.wasSize, h.wasEpoch, h.wasConfig, h.wasRoot, h.size, h.received, h.epoch, h.config, h.root, h.last)
	args = append(args, e.org, e.index, e.received, e.effective, e.disclosure, e.prev, e.recordHash,
		e.id, e.idempotency, e.agent, e.trace, e.tool, e.kind, e.record, e.envelope)
	args = append(args, t.org, t.level, t.index, t.root, t.hashes)
	return append(args, c.org, c.value, c.name)
}

// numbers returns n columns with room for rows rows.
func numbers(n, rows int) [][]int64 {
	all := make([][]int64, n)
	for i := range all {
		all[i] = make([]int64, 0, rows)
	}
	return all
}

// bytes returns n columns with room for rows rows.
func bytes(n, rows int) [][][]byte {
	all := make([][][]byte, n)
	for i := range all {
		all[i] = make([][]byte, 0, rows)
	}
	return all
}

// keyName returns what is stored of an idempotency key, nil for none.
func keyName(digest storage.KeyDigest) []byte {
	if digest == (storage.KeyDigest{}) {
		return nil
	}
	return digest[:]
}

// sameTile and sameCounter: the later one of a batch counts, and a statement may
// write a row once.
func sameTile(a, b *storage.Tile) bool       { return a.Level == b.Level && a.Index == b.Index }
func sameCounter(a, b *storage.Counter) bool { return a.Name == b.Name }

// lastOf yields those of all that no later one is the same as.
func lastOf[V any](all []V, same func(a, b *V) bool) func(func(*V) bool) {
	return func(yield func(*V) bool) {
		for i := range all {
			again := false
			for j := i + 1; j < len(all) && !again; j++ {
				again = same(&all[i], &all[j])
			}
			if !again && !yield(&all[i]) {
				return
			}
		}
	}
}
