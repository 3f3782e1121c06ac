//go:build unix

package backup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentledger/agentledger/internal/operate/backup"
)

// Only regular files are read from a directory, and nothing is written before all files were checked.
func TestOtherThanRegularFiles(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a FIFO":                 func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to a device":     func(path string) error { return os.Symlink("/dev/zero", path) },
		"a link to another file": func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a folder":               func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, file := range []string{"manifest.json", "heads.jsonl", "db/000009.log"} {
			t.Run(name+" for "+file, func(t *testing.T) {
				made, err := source(t, day).MakeIn(t.Context(), t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(made.Path, file)
				if err := errors.Join(os.Remove(path), put(path)); err != nil {
					t.Fatal(err)
				}
				to := filepath.Join(t.TempDir(), "x")
				_, err = backup.Extract(t.Context(), made.Path, to, nil)
				if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(file)+" is not a regular file") {
					t.Errorf("got %v", err)
				}
				if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("it left %s: %v", to, err)
				}
			})
		}
	}
}
