package backup_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

// A backup to one file removes what killed backups left beside it, but nothing that is in use, fresh or not its own.
func TestLeftFiles(t *testing.T) {
	dir := t.TempDir()
	made := func(name string, age time.Duration) string {
		t.Helper()
		writeFile(t, dir, name)
		path := filepath.Join(dir, name)
		if err := os.Chtimes(path, time.Time{}, day.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{".backup-1.new", ".heads-1", ".backup-2.tar", "backup-3.new", "heads-2"} {
		made(name, time.Hour)
	}
	used, err := durable.AcquireLock(made(".backup-4.new", time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	made(".backup-5.new", time.Second)
	if _, err := source(t, day).MakeFile(t.Context(), filepath.Join(dir, "one.tar")); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, ".backup-2.tar", ".backup-4.new", ".backup-5.new", "backup-3.new", "heads-2", "one.tar")
	if _, err := source(t, day).MakeFile(t.Context(), filepath.Join(dir, "one.tar")); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another one: got %v", err)
	}
	if err := used.Close(); err != nil {
		t.Error(err)
	}
	if _, err := source(t, day.Add(time.Hour)).MakeFile(t.Context(), filepath.Join(dir, "two.tar")); err != nil {
		t.Fatal(err)
	}
	wantNames(t, dir, ".backup-2.tar", "backup-3.new", "heads-2", "one.tar", "two.tar")
}
