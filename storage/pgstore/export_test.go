package pgstore

import (
	"context"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/agentledger/agentledger/storage/pgstore/schema"
)

// Refuse returns the result of the check of a server version that no test runs.
func Refuse(version int) error {
	return server{version: version, encoding: "UTF8", fsync: "on", fullPages: "on", commit: "on"}.checkSettings()
}

// Migrate creates the tables of this program.
func Migrate(ctx context.Context, url string) error {
	return withProgram(url, func(p *schema.Program, config *pgx.ConnConfig) error { return p.Bring(ctx, config) })
}

// MigrateTo creates the tables as an older program left them.
func MigrateTo(ctx context.Context, url string, version int64) (err error) {
	return withProgram(url, func(_ *schema.Program, config *pgx.ConnConfig) error {
		db := stdlib.OpenDB(*config)
		defer db.Close()
		steps, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("schema/migrations"), goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return err
		}
		_, err = steps.UpTo(ctx, version)
		return err
	})
}

func withProgram(url string, do func(*schema.Program, *pgx.ConnConfig) error) error {
	c, err := newConnector(Options{URL: url})
	if err != nil {
		return err
	}
	p, err := schema.New("", nil, nil)
	if err != nil {
		return err
	}
	return do(p, c.single())
}

// SchemaText returns the schema that the program requires.
func SchemaText() string {
	p, err := schema.New("", nil, nil)
	if err != nil {
		return err.Error()
	}
	return p.Text()
}

// ReadSchema returns the schema of a database in the form of SchemaText.
func ReadSchema(ctx context.Context, url string) (text string, err error) {
	err = withProgram(url, func(p *schema.Program, config *pgx.ConnConfig) error {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		text, err = p.ReadText(ctx, conn)
		return err
	})
	return text, err
}

// CountPrepared returns the number of open connections of the pool, and how many of them have prepared all statements of a
// take-over.
func (e *Engine) CountPrepared(ctx context.Context) (open, prepared int, err error) {
	open = int(e.pool.Stat().TotalConns())
	for range open {
		conn, err := e.pool.Acquire(ctx)
		if err != nil {
			return open, prepared, err
		}
		defer conn.Release()
		var missing int
		err = conn.QueryRow(ctx, "SELECT count(*) FROM unnest($1::text[]) AS s WHERE s NOT IN (SELECT statement FROM pg_prepared_statements)",
			takeoverStatements()).Scan(&missing)
		if err != nil {
			return open, prepared, err
		}
		if missing == 0 {
			prepared++
		}
	}
	return open, prepared, nil
}
