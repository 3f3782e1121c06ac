//go:build !unix

package durable

import (
	"errors"
	"os"
)

// LocksEnforced reports whether the operating system has file locks.
const LocksEnforced = false

// AcquireLock creates the file at path. This system has no file locks: the caller must make sure that only one process
// uses the folder.
func AcquireLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// AcquireTemporaryLock is AcquireLock here.
func AcquireTemporaryLock(path string) (*os.File, error) { return AcquireLock(path) }

// RemoveLock closes and removes the file of AcquireTemporaryLock.
func RemoveLock(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// AcquireExistingLock is like AcquireLock, but does not create the file.
func AcquireExistingLock(path string) (*os.File, error) { return os.Open(path) }
