package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Archiving are the settings of a server that archives its write-ahead log in the folder archive in its directory.
func Archiving() []string {
	return []string{"archive_mode=on", "archive_command=mkdir -p ../archive && cp %p ../archive/%f"}
}

// BaseBackup copies a running server as pg_basebackup does. The copy does not run.
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

// Restore runs a base backup with the archive of the server that it was made of: to the end of the archive, or to the point
// that settings name (recovery_target_name=NAME). Then it is a primary.
func (s *Server) Restore(of *Server, settings ...string) error {
	signal := filepath.Join(s.dataDirectory(), "recovery.signal")
	err := os.WriteFile(signal, nil, 0o600)
	if err == nil && s.programs.user != nil {
		err = os.Chown(signal, int(s.programs.user.Uid), int(s.programs.user.Gid))
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

// Archived returns when all that was written is in the archive.
func (s *Server) Archived() error {
	if err := s.Exec("CREATE TABLE IF NOT EXISTS pgtest_mark (n int)", "INSERT INTO pgtest_mark VALUES (1)"); err != nil {
		return err
	}
	if err := s.Exec("SELECT pg_switch_wal()"); err != nil {
		return err
	}
	return s.Await("SELECT last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1) FROM pg_stat_archiver WHERE last_archived_wal IS NOT NULL " +
		"UNION ALL SELECT false WHERE NOT EXISTS (SELECT FROM pg_stat_archiver WHERE last_archived_wal IS NOT NULL) LIMIT 1")
}
