//go:build unix

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Acquire makes the file at path and locks it until the result is closed. ErrHeld when it
// is locked already.
func Acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lockOpened(f)
}

// AcquireExisting holds the file at path without writing to it or making it, so also on
// a volume that is read-only. ErrHeld when somebody else does; another error when it
// can't be opened.
func AcquireExisting(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return lockOpened(f)
}

func lockOpened(f *os.File) (*os.File, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
