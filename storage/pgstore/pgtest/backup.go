package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Archiving returns the settings of a server that archives its write-ahead log in the folder archive in its directory.
func Archiving() []string {
	return []string{"archive_mode=on", "archive_command=mkdir -p ../archive && cp %p ../archive/%f"}
}

// BaseBackup copies a running server with pg_basebackup. The copy is not started.
func (s *Server) BaseBackup() (*Server, error) {
	made, err := s.programs.newServer(Layout{}, nil)
	if err != nil {
		return nil, err
	}
	err = s.programs.run("pg_basebackup", "--pgdata", made.dataDirectory(), "--dbname", "host="+s.dir+" user=postgres",
		"--checkpoint", "fast", "--wal-method", "stream", "--no-sync")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(made.dir))
	}
	return made, nil
}

// Restore starts a base backup with the archive of the server that it was taken from. It recovers to the end of the
// archive, or to the point that settings specify (recovery_target_name=NAME), and becomes a primary.
func (s *Server) Restore(of *Server, settings ...string) error {
	signal := filepath.Join(s.dataDirectory(), "recovery.signal")
	err := os.WriteFile(signal, nil, 0o600)
	if err == nil && s.programs.User != nil {
		err = os.Chown(signal, int(s.programs.User.Uid), int(s.programs.User.Gid))
	}
	if err != nil {
		return fmt.Errorf("restore postgres: %w", err)
	}
	s.settings = slices.Concat(s.settings, settings, []string{"recovery_target_action=promote",
		"restore_command=cp " + filepath.Join(of.dir, "archive") + "/%f %p"})
	if err := s.Run(); err != nil {
		return err
	}
	return s.Await("SELECT NOT pg_is_in_recovery()")
}

// Archived returns when everything that was written before the call is in the archive.
func (s *Server) Archived() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	var segment string
	err = conn.QueryRow(ctx, "SELECT pg_walfile_name(pg_switch_wal())").Scan(&segment)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("postgres: switch the log: %w", err)
	}
	return s.Await("SELECT coalesce(last_archived_wal, '') >= '" + segment + "' FROM pg_stat_archiver")
}
