package dial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Settings returns a function for pgconn.Config.AfterConnect that sets session settings on a new connection, with one
// message to the server. A pooler such as PgBouncer refuses most of them as startup parameters. Names must be constants
// of this program, and values must not contain quotes.
func Settings(settings map[string]string) pgconn.AfterConnectFunc {
	var sql strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&sql, "SET %s TO '%s'; ", name, settings[name])
	}
	text := sql.String()
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, text).Close()
	}
}
