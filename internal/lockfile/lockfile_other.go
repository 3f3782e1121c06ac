//go:build !unix

package lockfile

import "os"

// Enforced reports whether the system has file locks.
const Enforced = false

// Acquire makes the file at path. Without file locks here, that one process has it is
// the caller's promise.
func Acquire(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// AcquireExisting opens the file at path, as Acquire does, without making it.
func AcquireExisting(path string) (*os.File, error) { return os.Open(path) }
