//go:build unix

package durable

import (
	"errors"
	"os"
	"syscall"
)

// LocksEnforced reports whether the operating system has file locks.
const LocksEnforced = true

// AcquireLock creates the file at path, if necessary, and locks it until the result is closed or the process ends. It
// returns ErrLocked if the file is already locked, by this process or another one. A file left by a dead process is not
// locked.
func AcquireLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lockOpened(f)
}

// AcquireTemporaryLock is like AcquireLock, for a file that every holder removes with RemoveLock.
func AcquireTemporaryLock(path string) (*os.File, error) {
	for range 100 {
		f, err := AcquireLock(path)
		if err != nil {
			return nil, err
		}
		locked, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(named, locked) {
			return f, nil
		}
		if err := f.Close(); err != nil { // its former holder removed the file after it was opened here
			return nil, err
		}
	}
	return nil, ErrLocked // other holders come and go
}

// RemoveLock removes the file of AcquireTemporaryLock and releases the lock, in this order, so that no other holder's file
// is removed.
func RemoveLock(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }

// AcquireExistingLock is like AcquireLock, but neither creates the file nor writes to it, so it also works on a read-only
// volume. It returns ErrLocked if the file is already locked, and another error if it cannot be opened.
func AcquireExistingLock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return lockOpened(f)
}

func lockOpened(f *os.File) (*os.File, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
