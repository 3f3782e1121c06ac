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

// server has the version and the settings that decide whether a server keeps acknowledged data.
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

// querySettings asks the server and refuses one that can't be relied on.
func querySettings(ctx context.Context, conn *pgx.Conn) (s server, err error) {
	row := conn.QueryRow(ctx, serverSQL)
	if err := row.Scan(&s.version, &s.recovering, &s.encoding, &s.fsync, &s.fullPages, &s.commit, &s.standbys, &s.checksums); err != nil {
		return server{}, fmt.Errorf("read the server's settings: %w", unreachable(err))
	}
	return s, s.checkSettings()
}

// checkSettings returns why nothing may be stored here.
func (s server) checkSettings() error {
	switch {
	case s.version < oldest:
		return fmt.Errorf("the server is of version %d.%d, at least %d is needed", s.version/10000, s.version%10000, oldest/10000)
	case s.recovering:
		return errors.New("the server is a standby: the address must lead to the primary")
	case s.encoding != "UTF8":
		return fmt.Errorf("the database has encoding %s, UTF8 is needed", s.encoding)
	case s.fsync != "on":
		return errors.New("the server runs with fsync=off: a crash would lose what was acknowledged, and the database")
	case s.fullPages != "on":
		return errors.New("the server runs with full_page_writes=off: a crash could leave torn pages")
	case s.commit != "on" && s.commit != "remote_apply":
		return fmt.Errorf("synchronous_commit is %s for this user and database: only on and remote_apply keep what was acknowledged", s.commit)
	}
	return nil
}

// warnSettings says what is allowed and yet worth a change.
func (s server) warnSettings(logger *slog.Logger) {
	if s.standbys == "" {
		logger.Warn("PostgreSQL has no synchronous standby: losing this one server loses events that were acknowledged, " +
			"and failing over to an asynchronous standby freezes the logs that lost some. Set synchronous_standby_names")
	}
	if s.checksums != "on" {
		logger.Warn("PostgreSQL runs without data checksums: damaged pages are found by the re-verification only. See initdb --data-checksums")
	}
}
