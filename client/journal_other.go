//go:build !unix

package client

import "os"

// lockFile makes a file. Without file locks here, that one process has the journal
// is the caller's promise.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
