package pgstore

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
)

// appendSQL appends to any number of tenants. If a tenant's head is not the expected one, nothing of the tenant is
// written. At READ COMMITTED, an UPDATE that had to wait for another one compares again with the row that the other one
// left. The lowest schema of programs that may write is read once per statement. It changes under a lock that this
// statement waits for (package schema), so no append of an outdated program is applied afterwards.
//
// Arrays are unnested in the SELECT list, which yields their elements one by one: in FROM, each array would first be
// copied into a table. "IS TRUE" keeps the planner from joining with moved, whose size it cannot know. The
// organizations become a hash table in which each row is looked up.
//
// The server sets up each part of a statement for each execution, even if it writes nothing. So there are shorter
// statements: appendOneSQL for one event of one tenant, and appendEventsSQL for several events that write no other
// tables.
const (
	appendEventsSQL = guardedSQL + movedSQL
	appendSQL       = guardedSQL + otherTablesSQL + movedSQL
)

// guardedSQL is the common part: it moves the heads and writes the events in separate rows, and the counters.
const guardedSQL = `
WITH part AS (
	SELECT unnest($1::int8[]) AS org, unnest($2::int8[]) AS was_size, unnest($3::int8[]) AS was_epoch,
		unnest($4::int8[]) AS was_config, unnest($5::bytea[]) AS was_root,
		unnest($6::int8[]) AS size, unnest($7::int8[]) AS last_received, unnest($8::int8[]) AS epoch,
		unnest($9::int8[]) AS config_version, unnest($10::bytea[]) AS root, unnest($11::bytea[]) AS last
), moved AS (
	UPDATE head SET size = p.size, last_received = p.last_received, epoch = p.epoch,
		config_version = p.config_version, root = p.root, last = p.last
	FROM part p
	WHERE head.org = p.org AND head.size = p.was_size AND head.epoch = p.was_epoch
		AND head.config_version = p.was_config AND head.root = p.was_root
		AND (SELECT lowest FROM writer WHERE writer.org = 0) <= $12::int8
	RETURNING head.org
), events AS (
	INSERT INTO event (org, idx, received_at, effective, disclosure, entry, name, idempotency, agent, trace, tool, action_kind, documents)
	SELECT * FROM (
		SELECT unnest($13::int8[]) AS org, unnest($14::int8[]), unnest($15::int8[]), unnest($16::int2[]), unnest($17::int2[]),
			unnest($18::bytea[]), unnest($19::bytea[]), unnest($20::bytea[]), unnest($21::bytea[]), unnest($22::bytea[]),
			unnest($23::bytea[]), unnest($24::bytea[]), unnest($25::bytea[])
	) AS e
	WHERE (e.org IN (SELECT org FROM moved)) IS TRUE
), counters AS (
	INSERT INTO counter (org, value, name)
	SELECT * FROM (SELECT unnest($26::int8[]) AS org, unnest($27::int8[]), unnest($28::bytea[])) AS c
	WHERE (c.org IN (SELECT org FROM moved)) IS TRUE
	ON CONFLICT (org, name) DO UPDATE SET value = excluded.value
)`

// otherTablesSQL writes the names of events in segments, the segments and the tiles.
const otherTablesSQL = `, names AS (
	INSERT INTO event (org, idx, name, idempotency)
	SELECT * FROM (SELECT unnest($29::int8[]) AS org, unnest($30::int8[]), unnest($31::bytea[]), unnest($32::bytea[])) AS n
	WHERE (n.org IN (SELECT org FROM moved)) IS TRUE
), segments AS (
	INSERT INTO segment (org, idx, count, entries, texts)
	SELECT * FROM (
		SELECT unnest($33::int8[]) AS org, unnest($34::int8[]), unnest($35::int2[]), unnest($36::bytea[]), unnest($37::bytea[])
	) AS s
	WHERE (s.org IN (SELECT org FROM moved)) IS TRUE
), tiles AS (
	INSERT INTO tile (org, level, idx, root, hashes)
	SELECT * FROM (
		SELECT unnest($38::int8[]) AS org, unnest($39::int2[]), unnest($40::int8[]), unnest($41::bytea[]), unnest($42::bytea[])
	) AS t
	WHERE (t.org IN (SELECT org FROM moved)) IS TRUE
	ON CONFLICT (org, level, idx) DO UPDATE SET root = excluded.root, hashes = excluded.hashes
)`

// movedSQL ends the statements. It returns the tenants whose heads moved.
const movedSQL = `
SELECT org FROM moved`

// appendOneSQL takes the elements of the arrays of appendEventsSQL as parameters.
const appendOneSQL = `
WITH moved AS (
	UPDATE head SET size = $6::int8, last_received = $7::int8, epoch = $8::int8, config_version = $9::int8, root = $10::bytea,
		last = $11::bytea
	WHERE org = $1::int8 AND size = $2::int8 AND epoch = $3::int8 AND config_version = $4::int8 AND root = $5::bytea
		AND (SELECT lowest FROM writer WHERE writer.org = 0) <= $12::int8
	RETURNING org
), events AS (
	INSERT INTO event (org, idx, received_at, effective, disclosure, entry, name, idempotency, agent, trace, tool, action_kind, documents)
	SELECT $13::int8, $14::int8, $15::int8, $16::int2, $17::int2, $18::bytea, $19::bytea, $20::bytea, $21::bytea, $22::bytea,
		$23::bytea, $24::bytea, $25::bytea FROM moved
), counters AS (
	INSERT INTO counter (org, value, name) SELECT $26::int8, $27::int8, $28::bytea FROM moved
	ON CONFLICT (org, name) DO UPDATE SET value = excluded.value
)
SELECT org FROM moved`

// Names of the prepared statements.
const (
	appendName       = "append"
	appendEventsName = "append_events"
	appendOneName    = "append_one"
)

// appendStatements returns the statements that each connection of a queue prepares, by name.
func appendStatements() map[string]string {
	return map[string]string{appendName: appendSQL, appendEventsName: appendEventsSQL, appendOneName: appendOneSQL}
}

// arguments are the arguments of a prepared statement, in binary format.
type arguments struct {
	statement string // its name
	values    [][]byte
}

// moved contains the tenants whose heads moved.
type moved map[id.Tenant]bool

// move applies the parts whose heads are the expected ones, in the current transaction of conn or in a separate one.
func move(ctx context.Context, conn *pgx.Conn, args arguments) (moved, error) {
	const binary = 1
	result := conn.PgConn().ExecPrepared(ctx, args.statement, args.values, []int16{binary}, []int16{binary}).Read()
	m := make(moved, len(result.Rows))
	for _, row := range result.Rows {
		org, ok := number(row[0])
		if !ok {
			return nil, corruptValue("organization of a head")
		}
		m[id.Tenant(org)] = true
	}
	return m, result.Err
}

// argumentsFor returns the arguments for parts. They share no memory with the batches.
func (e *Engine) argumentsFor(parts []part) arguments {
	c := newColumns(e.codec, parts)
	for _, p := range parts {
		c.appendBatch(p.Batch)
	}
	known := binary.BigEndian.AppendUint64(nil, uint64(e.fence.known))
	head, events, counted := c.heads.values(), c.events.values(), c.counters.values()
	others := c.names.org.count + c.segments.org.count + c.tiles.org.count
	switch {
	case others > 0:
		return arguments{appendName, slices.Concat(head, [][]byte{known}, events, counted, c.names.values(), c.segments.values(), c.tiles.values())}
	case c.heads.org.count == 1 && c.events.org.count == 1 && c.counters.org.count == 1:
		return arguments{appendOneName, slices.Concat(elements(head), [][]byte{known}, elements(events), elements(counted))}
	}
	return arguments{appendEventsName, slices.Concat(head, [][]byte{known}, events, counted)}
}

// querier is a connection, a transaction or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}
