package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
)

// errReadOnly is returned by every write to a store that is open read-only.
var errReadOnly = fmt.Errorf("the store is open read-only: %w", storage.ErrReadOnly)

// readOnlyFS rejects every change with errReadOnly, so that a store that is open read-only stays as it is, byte for byte.
// Pebble's read-only mode should not attempt any; readOnlyFS enforces it.
type readOnlyFS struct{ vfs.FS }

// Lock implements vfs.FS. It never creates a lock file: if there is none, no process has the store open. It continues
// without the lock if the file system or the permissions of the file do not allow it: a process that could write could
// have locked the file.
func (r readOnlyFS) Lock(name string) (io.Closer, error) {
	if _, err := r.FS.Stat(name); errors.Is(err, os.ErrNotExist) {
		return noLock{}, nil
	}
	l, err := r.FS.Lock(name)
	if refusesWrites(err) {
		return noLock{}, nil
	}
	return l, err
}

// refusesWrites reports whether a lock file could not be opened for writing. If another process holds the lock, the
// error is not a *fs.PathError.
func refusesWrites(err error) bool {
	var path *fs.PathError
	return errors.Is(err, syscall.EROFS) || errors.As(err, &path) &&
		(errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT))
}

type noLock struct{}

// Close implements io.Closer.
func (noLock) Close() error { return nil }

// Create implements vfs.FS.
func (readOnlyFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadOnly }

// Link implements vfs.FS.
func (readOnlyFS) Link(string, string) error { return errReadOnly }

// OpenReadWrite implements vfs.FS.
func (readOnlyFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReadOnly
}

// Remove implements vfs.FS.
func (readOnlyFS) Remove(string) error { return errReadOnly }

// RemoveAll implements vfs.FS.
func (readOnlyFS) RemoveAll(string) error { return errReadOnly }

// Rename implements vfs.FS.
func (readOnlyFS) Rename(string, string) error { return errReadOnly }

// ReuseForWrite implements vfs.FS.
func (readOnlyFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReadOnly
}

// MkdirAll implements vfs.FS.
func (readOnlyFS) MkdirAll(string, os.FileMode) error { return errReadOnly }

// Unwrap implements vfs.FS.
func (r readOnlyFS) Unwrap() vfs.FS { return r.FS }
