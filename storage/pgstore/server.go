package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
)

// oldest is the oldest server_version_num that is supported.
const oldest = 150000

// server contains the version of a server and the settings that decide whether it keeps acknowledged data.
type server struct {
	version    int // server_version_num
	recovering bool
	encoding   string
	fsync      string
	fullPages  string
	commit     string // synchronous_commit
	standbys   string // synchronous_standby_names
	checksums  string
}

const serverSQL = `SELECT current_setting('server_version_num')::int4, pg_is_in_recovery(), current_setting('server_encoding'),
	current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
	current_setting('synchronous_standby_names'), current_setting('data_checksums')`

// querySettings reads the settings of the server and rejects a server that is not reliable.
func querySettings(ctx context.Context, conn *pgx.Conn) (s server, err error) {
	row := conn.QueryRow(ctx, serverSQL)
	if err := row.Scan(&s.version, &s.recovering, &s.encoding, &s.fsync, &s.fullPages, &s.commit, &s.standbys, &s.checksums); err != nil {
		return server{}, fmt.Errorf("read the server's settings: %w", unreachable(err))
	}
	return s, s.checkSettings()
}

// checkSettings returns an error if acknowledged data could be lost on this server.
func (s server) checkSettings() error {
	switch {
	case s.version < oldest:
		return fmt.Errorf("the server has version %d.%d, but at least %d is required", s.version/10000, s.version%10000, oldest/10000)
	case s.recovering:
		return errors.New("the server is a standby: the address must lead to the primary")
	case s.encoding != "UTF8":
		return fmt.Errorf("the database has encoding %s, but UTF8 is required", s.encoding)
	case s.fsync != "on":
		return errors.New("the server runs with fsync=off: a crash could lose acknowledged data and destroy the database")
	case s.fullPages != "on":
		return errors.New("the server runs with full_page_writes=off: a crash could leave torn pages")
	case s.commit != "on" && s.commit != "remote_apply":
		return fmt.Errorf("synchronous_commit is %s for this user and database: only on and remote_apply keep acknowledged data", s.commit)
	}
	return nil
}

// warnSettings logs settings that are allowed but should be changed.
func (s server) warnSettings(logger *slog.Logger) {
	if s.standbys == "" {
		logger.Warn("PostgreSQL has no synchronous standby: losing this server loses acknowledged events, " +
			"and failing over to an asynchronous standby freezes the logs that lost some. Set synchronous_standby_names")
	}
	if s.checksums != "on" {
		logger.Warn("PostgreSQL runs without data checksums: damaged pages are found only by the re-verification. See initdb --data-checksums")
	}
}
