package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

// staleAge is the minimum age of a temporary file that is removed if no process has locked it.
const staleAge = time.Minute

// temporary is a temporary file that this process keeps locked, so that other processes see that it is in use.
type temporary struct {
	*durable.Temporary
	lock *os.File // nil if the file could not be locked
}

func newTemporary(path, pattern string) (*temporary, error) {
	t, err := durable.NewTemporary(path, pattern)
	if err != nil {
		return nil, err
	}
	lock, _ := durable.AcquireLock(t.Name()) // without a lock, the file is never removed automatically
	return &temporary{t, lock}, nil
}

// Discard removes the file and its lock.
func (t *temporary) Discard() error { return errors.Join(t.Temporary.Discard(), t.unlock()) }

func (t *temporary) unlock() error {
	if t.lock == nil {
		return nil
	}
	lock := t.lock
	t.lock = nil
	return lock.Close()
}

// removeStale removes the temporary files of interrupted backups from dir.
func removeStale(dir string, now time.Time) error {
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
		if now.Sub(info.ModTime()) >= staleAge {
			err = errors.Join(err, removeUnlocked(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// removeUnlocked removes a file unless a process has locked it.
func removeUnlocked(path string) error {
	lock, err := durable.AcquireExistingLock(path)
	if err != nil {
		return nil // it is in use, removed, or owned by another user
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, lock.Close())
	}
	return lock.Close()
}
