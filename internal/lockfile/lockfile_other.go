//go:build !unix

package lockfile

import "os"

// Hold makes the file at path. Without file locks here, that one process has it is
// the caller's promise.
func Hold(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// HoldExisting opens the file at path, as Hold does, without making it.
func HoldExisting(path string) (*os.File, error) { return os.Open(path) }
