package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

// leftAge is how old a temporary file is at least that no process has locked and that is removed.
const leftAge = time.Minute

// temporary is a temporary file that this process keeps locked, so that others see that it is in use.
type temporary struct {
	*durable.Temporary
	lock *os.File // nil where there are no locks
}

func newTemporary(path, pattern string) (*temporary, error) {
	t, err := durable.NewTemporary(path, pattern)
	if err != nil {
		return nil, err
	}
	lock, _ := durable.AcquireLock(t.Name()) // without one, nothing is ever removed
	return &temporary{t, lock}, nil
}

// Discard is that of the file.
func (t *temporary) Discard() error { return errors.Join(t.Temporary.Discard(), t.unlock()) }

func (t *temporary) unlock() error {
	if t.lock == nil {
		return nil
	}
	lock := t.lock
	t.lock = nil
	return lock.Close()
}

// removeLeft removes the temporary files in dir that killed backups to one file left.
func removeLeft(dir string, now time.Time) error {
	if !durable.LocksEnforced {
		return nil
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		archive, _ := filepath.Match(archivePattern, e.Name())
		heads, _ := filepath.Match(headsPattern, e.Name())
		info, infoErr := e.Info()
		if !archive && !heads || infoErr != nil || !info.Mode().IsRegular() {
			continue
		}
		if now.Sub(info.ModTime()) >= leftAge {
			err = errors.Join(err, removeUnlocked(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// removeUnlocked removes a file unless a process has locked it.
func removeUnlocked(path string) error {
	lock, err := durable.AcquireExistingLock(path)
	if err != nil {
		return nil // it is in use, gone, or of another user
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, lock.Close())
	}
	return lock.Close()
}
