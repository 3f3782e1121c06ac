package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
)

// writerStep is the step that created table writer and added the schema of each node's program to table node.
const writerStep = 8

// state is the schema of a database, as recorded in the database.
type state struct {
	number    int64  // 0 if there is no table
	hasNodes  bool   // whether table node exists
	lowest    int64  // oldest schema that a program must know to write; 0 before writerStep
	version   string // of the program that last upgraded the schema
	described int64  // schema that tables describes
	tables    string // formatted by formatSchema
}

const (
	thereSQL  = `SELECT to_regclass('` + goose.DefaultTablename + `') IS NOT NULL, to_regclass('node') IS NOT NULL`
	numberSQL = `SELECT coalesce(max(version_id), 0) FROM ` + goose.DefaultTablename
	writerSQL = `SELECT lowest, version, described, tables FROM writer WHERE org = 0`
)

// readState changes nothing, and works without any tables.
func readState(ctx context.Context, conn *pgx.Conn) (s state, err error) {
	fail := func(err error) (state, error) {
		return state{}, fmt.Errorf("read schema version: %w", unreachable(err))
	}
	numbered := false
	if err := conn.QueryRow(ctx, thereSQL).Scan(&numbered, &s.hasNodes); err != nil {
		return fail(err)
	}
	if !numbered {
		return s, nil
	}
	if err := conn.QueryRow(ctx, numberSQL).Scan(&s.number); err != nil {
		return fail(err)
	}
	if s.number < writerStep {
		return s, nil
	}
	var version, tables []byte
	if err := conn.QueryRow(ctx, writerSQL).Scan(&s.lowest, &version, &s.described, &tables); err != nil {
		return fail(err)
	}
	s.version, s.tables = string(version), string(tables)
	return s, nil
}

const describeSQL = `UPDATE writer SET version = $1, described = $2, tables = $3 WHERE org = 0 AND described < $2`

// describe stores the text of the tables for older programs.
func (p *Program) describe(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, describeSQL, []byte(p.Version), p.Newest(), []byte(p.known.text))
	if err != nil {
		return fmt.Errorf("describe the schema: %w", unreachable(err))
	}
	return nil
}
