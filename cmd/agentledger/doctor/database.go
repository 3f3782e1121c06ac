package doctor

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/internal/textcheck"
)

const (
	oldestPostgres   = 150000 // server_version_num
	fewestConnection = 40     // 20 of a service, and as many for its replacement
)

// checkDatabase reads the settings of the server that determine whether it preserves acknowledged data.
func checkDatabase(ctx context.Context, c config.Serve) []Finding {
	if c.Storage == "" {
		return []Finding{good("none: the store is embedded")}
	}
	settings, err := readDatabase(ctx, c.Storage)
	if err != nil {
		return []Finding{attend("look at --storage, PGPASSFILE, the network and pg_hba.conf", "%v", err)}
	}
	return settings.judge(time.Now())
}

// databaseSettings are the settings of one server.
type databaseSettings struct {
	version               int
	standby               bool
	at                    time.Time // its clock
	encoding              string
	fsync, fullPages      string
	commit, standbys      string
	checksums, wal        string
	connections, reserved string
}

const settingsSQL = `SELECT current_setting('server_version_num')::int4, pg_is_in_recovery(), clock_timestamp(),
	current_setting('server_encoding'), current_setting('fsync'), current_setting('full_page_writes'),
	current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
	current_setting('data_checksums'), current_setting('wal_level'), current_setting('max_connections'),
	current_setting('superuser_reserved_connections')`

// readDatabase connects and reads the settings. Its errors do not contain the address, which may contain a password.
func readDatabase(ctx context.Context, address string) (s databaseSettings, err error) {
	config, err := pgx.ParseConfig(secret.TrimLineEnd(address))
	if err != nil {
		return s, errors.New("the database URL is malformed")
	}
	config.Password = secret.TrimLineEnd(config.Password)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, settingsSQL).Scan(&s.version, &s.standby, &s.at, &s.encoding, &s.fsync, &s.fullPages,
		&s.commit, &s.standbys, &s.checksums, &s.wal, &s.connections, &s.reserved)
	return s, err
}

// judge judges all settings. now is the time of this machine.
func (s databaseSettings) judge(now time.Time) (found []Finding) {
	found = append(found, s.judgeDurability()...)
	if s.version < oldestPostgres {
		found = append(found, attend("upgrade to version 15 or newer", "the server is of version %d.%d",
			s.version/10000, s.version%10000))
	}
	if s.standby {
		found = append(found, attend("name the primary in --storage", "the server is a standby"))
	}
	if s.encoding != "UTF8" {
		found = append(found, attend("make the database with ENCODING 'UTF8'", "its encoding is %s", s.encoding))
	}
	if ahead := s.at.Sub(now).Abs(); ahead > clock.Bound {
		found = append(found, advise("run a time service on both machines", "its clock and the one here are %v apart",
			ahead.Round(time.Millisecond)))
	}
	most, _ := strconv.Atoi(s.connections) // a server returns numbers
	reserved, _ := strconv.Atoi(s.reserved)
	if most-reserved < fewestConnection {
		found = append(found, attend("set max_connections to 100",
			"it allows %s, but a service opens up to 20, and twice as many while it is replaced",
			textcheck.Count(most-reserved, "connection")))
	}
	if len(found) == 0 {
		found = append(found, good("PostgreSQL %d keeps what it acknowledged", s.version/10000))
	}
	return found
}

func (s databaseSettings) judgeDurability() (found []Finding) {
	if s.fsync != "on" {
		found = append(found, attend("set fsync = on",
			"fsync is %s: a crash loses acknowledged events, and the database", s.fsync))
	}
	if s.fullPages != "on" {
		found = append(found, attend("set full_page_writes = on", "full_page_writes is %s: a crash leaves torn pages",
			s.fullPages))
	}
	if s.commit != "on" && s.commit != "remote_apply" {
		found = append(found, attend("set synchronous_commit = on for this user and database",
			"synchronous_commit is %s: a crash loses acknowledged events", s.commit))
	}
	if s.wal == "minimal" {
		found = append(found, attend("set wal_level = replica",
			"wal_level is minimal: there can be no archive and no standby"))
	}
	if s.standbys == "" {
		found = append(found, advise("set synchronous_standby_names",
			"there is no synchronous standby: losing this server loses acknowledged events"))
	}
	if s.checksums != "on" {
		found = append(found, advise("pg_checksums --enable, with the server stopped",
			"there are no data checksums: the re-verification alone finds damaged pages"))
	}
	return found
}
