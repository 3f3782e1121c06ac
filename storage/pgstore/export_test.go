package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/agentledger/agentledger/storage/pgstore/schematext"
)

// Refuse is the check of a server of a version that no test runs.
func Refuse(version int) error {
	return server{version: version, encoding: "UTF8", fsync: "on", fullPages: "on", commit: "on"}.checkSettings()
}

// Migrate makes the tables of this program.
func Migrate(ctx context.Context, url string) error {
	c, err := newConnector(Options{URL: url})
	if err != nil {
		return err
	}
	return migrate(ctx, c.single())
}

// MigrateTo makes the tables as an older program left them.
func MigrateTo(ctx context.Context, url string, version int64) (err error) {
	c, err := newConnector(Options{URL: url})
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*c.single())
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := migrator(db)
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	return err
}

// SchemaText is what the program wants of a database.
func SchemaText() string { return schemaText }

// ReadSchema returns what a database has, as SchemaText has it.
func ReadSchema(ctx context.Context, url string) (string, error) {
	c, err := newConnector(Options{URL: url})
	if err != nil {
		return "", err
	}
	conn, err := pgx.ConnectConfig(ctx, c.single())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	found, err := readSchema(ctx, conn)
	return schematext.Format(found), err
}
