package backup

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

// inUse is the suffix of the lock file next to a snapshot that its reader keeps locked. The system releases the lock
// when the process ends, however it ends.
const inUse = ".in-use"

// useTime is how long a snapshot without a lock is kept: its reader takes the lock only after the server's response.
const useTime = 2 * time.Minute

// Use represents a process that reads a snapshot.
type Use struct {
	dir  string
	lock *os.File // nil if it could not be locked
}

// UseSnapshot marks the snapshot in dir as read by this process. If it cannot be locked, for example on a read-only
// volume, the snapshot is treated like one of an unknown reader.
func UseSnapshot(dir string) *Use {
	u := &Use{dir: dir}
	if durable.LocksEnforced {
		u.lock, _ = durable.AcquireLock(dir + inUse)
	}
	return u
}

// End ends the use. If the snapshot still exists, it may now be removed.
func (u *Use) End() error {
	if u.lock == nil {
		return nil
	}
	var err error
	if _, gone := os.Stat(u.dir); errors.Is(gone, fs.ErrNotExist) {
		err = removeFile(u.dir + inUse)
	}
	return errors.Join(err, u.lock.Close())
}

// isAbandoned reports whether the reader of a snapshot of that age has ended without removing the snapshot. A reader
// without a lock is a third-party program, of which it is unknown whether it still runs.
func isAbandoned(dir string, age time.Duration) bool {
	lock, err := durable.AcquireExistingLock(dir + inUse)
	switch {
	case err == nil:
		_ = lock.Close() // nothing was written
		return age >= useTime
	case errors.Is(err, durable.ErrLocked):
		return false
	}
	return age >= snapshotLife
}

// removeSnapshot removes a snapshot and the file of its reader.
func removeSnapshot(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return removeFile(dir + inUse)
}

func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
