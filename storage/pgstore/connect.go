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
	"github.com/agentledger/agentledger/storage/pgstore/dial"
)

const (
	connectTime = 10 * time.Second
	silence     = 30 * time.Second // a peer that answers nothing for so long is taken for gone
)

// session are the settings of every connection. They are set after connecting, because a pooler refuses most of them at
// the start. There is no statement_timeout because it would end an append's wait for its commit, which lock_timeout does
// not. A transaction that a lost client left open must end soon, because it holds the lock of a head, for which the next
// owner of its ledger waits.
var session = map[string]string{
	"default_transaction_isolation":       "read committed",
	"statement_timeout":                   "0",
	"lock_timeout":                        lockTimeout,
	"idle_in_transaction_session_timeout": "5s",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "4",
}

// connector opens connections that were checked.
type connector struct {
	config      *pgxpool.Config
	synchronous atomic.Bool // of the connection that was opened last: the server waits for a standby
}

func newConnector(o Options) (*connector, error) {
	config, err := pgxpool.ParseConfig(secret.TrimLineEnd(o.URL))
	if err != nil {
		return nil, errors.New("the address of the database can't be read") // the cause may repeat a password
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

// single returns the configuration of one connection, without the checks.
func (c *connector) single() *pgx.ConnConfig { return c.config.ConnConfig.Copy() }

// inspectServer connects once and returns the server's settings. It refuses the same servers as connectAndCheck.
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

// openPool opens the connections of everything but appends. opened is called for each new one.
func (c *connector) openPool(ctx context.Context, most int, opened func()) (*pgxpool.Pool, error) {
	config := c.config.Copy()
	config.MaxConns = int32(most)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		opened()
		return c.prepare(ctx, conn)
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

// prepare checks the server behind a new connection and pins synchronous_commit for the session. A
// changed configuration file has then no effect on the session.
func (c *connector) prepare(ctx context.Context, conn *pgx.Conn) error {
	s, err := querySettings(ctx, conn)
	if err != nil {
		return err
	}
	c.synchronous.Store(s.standbys != "")
	if _, err := conn.Exec(ctx, "SET synchronous_commit TO "+s.commit); err != nil { // on or remote_apply, as inspect saw to
		return fmt.Errorf("pin synchronous_commit: %w", unreachable(err))
	}
	return nil
}

// warning is the key of a connection's custom data under which the server's last warning is kept.
const warning = "warning"

// remember keeps a warning for confirmed. Every warning counts, because their texts are in the
// server's language and no warning is expected during a commit.
func remember(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[warning] = n.Message
	}
}

// begins forgets earlier warnings, for example those of a new session. Every warning that confirmed
// finds came after this call.
func begins(conn *pgx.Conn) { delete(conn.PgConn().CustomData(), warning) }

// confirmed returns an error if the server warned since begins. A commit with a warning may be
// missing where it has to be, for example on the standby.
func confirmed(conn *pgx.Conn) error {
	if message, warned := conn.PgConn().CustomData()[warning]; warned {
		return fmt.Errorf("the server warned: %v", message)
	}
	return nil
}
