package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Exists reports whether the database contains a store, of any version, in the schema that Open would use. It changes
// nothing and does not check whether the store can be used.
func Exists(ctx context.Context, o Options) (bool, error) {
	c, err := newConnector(o)
	if err != nil {
		return false, fmt.Errorf("look for a store: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, c.single())
	if err != nil {
		return false, fmt.Errorf("look for a store: %w", unreachable(err))
	}
	defer conn.Close(ctx)
	var found bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('head') IS NOT NULL`).Scan(&found); err != nil {
		return false, fmt.Errorf("look for a store: %w", unreachable(err))
	}
	return found, nil
}
