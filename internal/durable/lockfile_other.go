//go:build !unix

package durable

import "os"

// LocksEnforced reports whether the system has file locks.
const LocksEnforced = false

// AcquireLock makes the file at path. Without file locks here, that one process has it is
// the caller's promise.
func AcquireLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// AcquireExistingLock opens the file at path, as Acquire does, without making it.
func AcquireExistingLock(path string) (*os.File, error) { return os.Open(path) }
