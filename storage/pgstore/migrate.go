package pgstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema to the version that this program knows. A newer version is refused,
// because this program does not know its meaning. Programs that start together take turns by a
// table, and wait for its locks without a limit.
func migrate(ctx context.Context, config *pgx.ConnConfig) (err error) {
	config.RuntimeParams["lock_timeout"] = "0"
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := migrator(db)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read schema version: %w", err)
	case current > target:
		return fmt.Errorf("the schema has version %d, this program knows %d: use the newer program", current, target)
	case current == target:
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate schema from version %d to %d: %w", current, target, err)
	}
	return nil
}

// wantSchema refuses a schema of another version than this program knows, and changes nothing.
func wantSchema(ctx context.Context, config *pgx.ConnConfig) (err error) {
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := migrator(db)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	known := sources[len(sources)-1].Version
	found := sql.NullInt64{}
	err = db.QueryRowContext(ctx, "SELECT max(version_id) FROM "+goose.DefaultTablename).Scan(&found)
	switch {
	case err != nil:
		return fmt.Errorf("read schema version: %w", err)
	case found.Int64 > known:
		return fmt.Errorf("the schema has version %d, this program knows %d: use the newer program", found.Int64, known)
	case found.Int64 < known:
		return fmt.Errorf("the schema has version %d, this program needs %d: start the server once, which brings it up", found.Int64, known)
	}
	return nil
}

func migrator(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresTableLocker()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, goose.WithLocker(locker), goose.WithDisableGlobalRegistry(true))
}
