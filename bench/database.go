package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// database is a PostgreSQL server on the same machine and disk, reached by its Unix socket, without a standby.
type database struct {
	server  *pgtest.Server
	dir     string
	schemas int
}

// postgres returns the server of the suite, which the first call starts.
func (s *suite) postgres() (*database, error) {
	if s.pg != nil {
		return s.pg, nil
	}
	dir, err := os.MkdirTemp(s.Dir, "agentledger-bench-pg-")
	if err != nil {
		return nil, err
	}
	err = os.Chmod(dir, 0o755) // the server runs as another user
	var server *pgtest.Server
	if err == nil {
		server, err = pgtest.StartIn(pgtest.Layout{Data: filepath.Join(dir, "data")},
			"shared_buffers=1GB", "checkpoint_timeout=15min", "wal_compression=lz4", "maintenance_work_mem=256MB")
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.pg = &database{server: server, dir: dir}
	return s.pg, nil
}

func (d *database) stop() error { return errors.Join(d.server.Stop(), os.RemoveAll(d.dir)) }

// store is a schema of the server, which is initially empty.
type store struct {
	database *database
	schema   string
	url      string
}

func (d *database) fresh() (store, error) {
	d.schemas++
	schema := fmt.Sprint("bench", d.schemas)
	return store{d, schema, d.server.URL("search_path=" + schema)}, d.server.Exec("CREATE SCHEMA " + schema)
}

func (s store) open(ctx context.Context) (*pgstore.Engine, error) {
	return pgstore.Open(ctx, pgstore.Options{URL: s.url})
}

// drop removes the store. A checkpoint discards what the server has not written yet.
func (s store) drop() error {
	return s.database.server.Exec("DROP SCHEMA "+s.schema+" CASCADE", "CHECKPOINT")
}

// rest vacuums the store, as the server would eventually do.
func (s store) rest(ctx context.Context) error {
	_, err := s.number(ctx, "VACUUM (ANALYZE)")
	return err
}

// number returns the result of a query for one number, or 0 if it has no row.
func (s store) number(ctx context.Context, query string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query).Scan(&n); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	return n, nil
}

// allTables is the query of the size in bytes, with everything that belongs to a table.
const allTables = "SELECT sum(pg_total_relation_size(oid))::int8 FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
