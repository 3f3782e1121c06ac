package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby copies the cluster of a running server and starts the copy as its streaming standby. name is its name for
// synchronous_standby_names.
func (s *Server) Standby(name string, settings ...string) (*Server, error) {
	standby, err := s.programs.newServer(Layout{}, settings)
	if err != nil {
		return nil, err
	}
	source := fmt.Sprintf("host=%s user=postgres application_name=%s", s.dir, name)
	err = s.programs.run("pg_basebackup", "--pgdata", standby.dataDirectory(), "--dbname", source,
		"--write-recovery-conf", "--checkpoint", "fast", "--wal-method", "stream", "--no-sync")
	if err == nil {
		err = standby.Run()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(standby.dir))
	}
	return standby, nil
}

// Promote makes a standby the primary.
func (s *Server) Promote() error { return s.Exec("SELECT pg_promote()") }

// Exec runs statements without arguments as the superuser.
func (s *Server) Exec(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("postgres: %s: %w", statement, err), conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// Await returns when a boolean query returns true.
func (s *Server) Await(query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	for done := false; err == nil && !done; time.Sleep(5 * time.Millisecond) {
		err = conn.QueryRow(ctx, query).Scan(&done)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("postgres: await %s: %w", query, err), conn.Close(ctx))
	}
	return conn.Close(ctx)
}
