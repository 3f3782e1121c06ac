package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
)

// writerStep is the step that made table writer. It also gave table node the schema of each node's program.
const writerStep = 8

// state is the schema of a database, as the database tells it.
type state struct {
	number    int64  // 0: no table
	hasNodes  bool   // table node is there
	lowest    int64  // oldest schema that a program may know to write; 0 before writerStep
	version   string // of the program that brought the schema up last
	described int64  // schema that tables is of
	tables    string // formatted by formatSchema
}

const (
	thereSQL  = `SELECT to_regclass('` + goose.DefaultTablename + `') IS NOT NULL, to_regclass('node') IS NOT NULL`
	numberSQL = `SELECT coalesce(max(version_id), 0) FROM ` + goose.DefaultTablename
	writerSQL = `SELECT lowest, version, described, tables FROM writer WHERE org = 0`
)

// readState changes nothing, and needs no table.
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

// describe leaves the text of the tables for older programs.
func (p *Program) describe(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, describeSQL, []byte(p.Version), p.Newest(), []byte(p.known.text))
	if err != nil {
		return fmt.Errorf("describe the schema: %w", unreachable(err))
	}
	return nil
}
