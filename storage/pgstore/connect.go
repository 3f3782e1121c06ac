package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/dial"
)

const (
	connectTime = 10 * time.Second
	silence     = 30 * time.Second // a peer that does not respond for this long is considered gone
)

// session contains the settings of every connection. They are set after connecting, because a pooler rejects most of
// them at startup. There is no statement_timeout: unlike lock_timeout, it would also end an append's wait for its
// commit. A transaction that a lost client left open must end soon, because it locks the head of a ledger whose next
// owner is waiting.
var session = map[string]string{
	"default_transaction_isolation":       "read committed",
	"statement_timeout":                   "0",
	"lock_timeout":                        lockTimeout,
	"idle_in_transaction_session_timeout": "5s",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "4",
}

// connector opens and checks connections.
type connector struct {
	config      *pgxpool.Config
	synchronous atomic.Bool // whether the server of the latest connection waits for a standby
}

func newConnector(o Options) (*connector, error) {
	config, err := pgxpool.ParseConfig(secret.TrimLineEnd(o.URL))
	if err != nil {
		return nil, errors.New("the database URL is malformed") // the cause may contain a password
	}
	cc := config.ConnConfig
	cc.Password = secret.TrimLineEnd(cc.Password) // PGPASSWORD may have been filled from a file
	settings := maps.Clone(session)
	maps.Copy(settings, dial.Planning())
	if o.ReadOnly {
		settings["default_transaction_read_only"] = "on"
	}
	cc.RuntimeParams["client_encoding"] = "UTF8"
	if cc.RuntimeParams["application_name"] == "" {
		cc.RuntimeParams["application_name"] = "agentledger"
	}
	cc.AfterConnect = dial.Settings(settings)
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectTime
	}
	dialer := net.Dialer{
		Timeout: cc.ConnectTimeout, Control: dial.UserTimeout(silence),
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 3, Interval: silence / 6, Count: 4},
	}
	cc.DialFunc = dialer.DialContext
	cc.OnNotice = remember
	return &connector{config: config}, nil
}

// single returns the configuration of a single connection, without the checks.
func (c *connector) single() *pgx.ConnConfig { return c.config.ConnConfig.Copy() }

// inspectServer connects once and returns the server's settings. It rejects the same servers as connectAndCheck.
func (c *connector) inspectServer(ctx context.Context) (server, error) {
	conn, err := pgx.ConnectConfig(ctx, c.single())
	if err != nil {
		return server{}, unreachable(err)
	}
	defer conn.Close(ctx)
	return querySettings(ctx, conn)
}

// connectAndCheck opens a connection for appends.
func (c *connector) connectAndCheck(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, c.single())
	if err != nil {
		return nil, unreachable(err)
	}
	err = c.prepare(ctx, conn)
	for name, sql := range appendStatements() {
		if err == nil {
			_, err = conn.Prepare(ctx, name, sql)
		}
	}
	if err != nil {
		return nil, errors.Join(unreachable(err), conn.Close(ctx))
	}
	return conn, nil
}

// openPool opens the connections for everything except appends. It calls opened for each new connection.
func (c *connector) openPool(ctx context.Context, o Options, opened func()) (*pgxpool.Pool, error) {
	config := c.config.Copy()
	config.MaxConns = int32(o.Readers)
	if o.ConnectAhead {
		config.MinConns = min(minReaders, config.MaxConns)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		opened()
		err := c.prepare(ctx, conn)
		if o.ConnectAhead {
			for _, sql := range takeoverStatements() {
				if err == nil {
					_, err = conn.Prepare(ctx, sql, sql)
				}
			}
		}
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreachable(err)
	}
	return pool, nil
}

// takeoverStatements returns the statements of a take-over and of the first event after it, except the append.
func takeoverStatements() []string {
	return []string{headSQL, barrierSQL, scanSQL, scanToEndSQL, countersSQL, findSQL, findOneSQL, tileRootsSQL, tileHashesSQL,
		entriesSQL, entryOneSQL, sizeSQL, eventsSQL(0, eventsWithin, segmentsWithin),
		eventsSQL(storage.FieldRecord|storage.FieldEnvelope, eventsWithin, segmentsWithin)}
}

// prepare checks the server of a new connection and pins synchronous_commit for the session, so that a changed
// configuration file does not affect it.
func (c *connector) prepare(ctx context.Context, conn *pgx.Conn) error {
	s, err := querySettings(ctx, conn)
	if err != nil {
		return err
	}
	c.synchronous.Store(s.standbys != "")
	if _, err := conn.Exec(ctx, "SET synchronous_commit TO "+s.commit); err != nil { // on or remote_apply, which querySettings checked
		return fmt.Errorf("pin synchronous_commit: %w", unreachable(err))
	}
	return nil
}

// warning is the key under which a connection's custom data contains the server's last warning.
const warning = "warning"

// remember stores a warning for confirmed. Every warning counts, because their texts are in the server's language and
// no warning is expected during a commit.
func remember(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[warning] = n.Message
	}
}

// begins removes earlier warnings, for example from the start of the session, so that confirmed finds only later ones.
func begins(conn *pgx.Conn) { delete(conn.PgConn().CustomData(), warning) }

// confirmed returns an error if the server has warned since begins. A commit with a warning may be missing where it is
// required, for example on the standby.
func confirmed(conn *pgx.Conn) error {
	if message, warned := conn.PgConn().CustomData()[warning]; warned {
		return fmt.Errorf("the server warned: %v", message)
	}
	return nil
}
