package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/stdlib"
)

// Refuse is the check of a server of a version that no test runs.
func Refuse(version int) error {
	return server{version: version, encoding: "UTF8", fsync: "on", fullPages: "on", commit: "on"}.refuse()
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
