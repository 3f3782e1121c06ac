//go:build unix

package durable

import (
	"errors"
	"os"
	"syscall"
)

// LocksEnforced reports whether the system has file locks.
const LocksEnforced = true

// AcquireLock makes the file at path and locks it until the result is closed. ErrHeld when it
// is locked already.
func AcquireLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lockOpened(f)
}

// AcquireExistingLock holds the file at path without writing to it or making it, so it also works on a
// read-only volume. The error is ErrHeld when another process or call holds the file; it is another
// error when the file can't be opened.
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
