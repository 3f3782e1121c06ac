package backup

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

// inUse ends the name of the file beside a snapshot that its reader keeps locked. The system ends the lock with the
// process, however that ends.
const inUse = ".in-use"

// useTime is how long a snapshot stays without a lock: its reader takes the lock after the server's answer.
const useTime = 2 * time.Minute

// Use is the use of a snapshot by this process.
type Use struct {
	dir  string
	lock *os.File // nil where none can be taken
}

// UseSnapshot says that this process reads the snapshot in dir. Where no lock can be taken, for example on a volume
// that is read-only here, the snapshot stays as one of an unknown reader.
func UseSnapshot(dir string) *Use {
	u := &Use{dir: dir}
	if durable.LocksEnforced {
		u.lock, _ = durable.AcquireLock(dir + inUse)
	}
	return u
}

// End ends the use. A snapshot that is still there is free to be removed.
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
// without a lock is another program than the commands of this one: nothing tells whether that runs.
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
