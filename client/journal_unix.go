//go:build unix

package client

import (
	"errors"
	"os"
	"syscall"
)

// lockFile makes a file and holds it until it is closed or the process ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(ErrJournalInUse, f.Close())
	}
	return f, nil
}
