package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
)

// errReadOnly answers every write to a store that is open read-only.
var errReadOnly = fmt.Errorf("the store is open read-only: %w", storage.ErrReadOnly)

// enterWrite is beginCall for a call that writes.
func (e *Engine) enterWrite(ctx context.Context) error {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	if e.readOnly {
		e.endCall()
		return errReadOnly
	}
	return nil
}

// openReadOnly opens a store that is there. Pebble replays the logs into memory
// and leaves every file as it is.
func (e *Engine) openReadOnly(o Options, exists bool) (err error) {
	if !exists {
		return fmt.Errorf("no store in %s: %w", o.Dir, os.ErrNotExist)
	}
	if err := syncLogs(o.FS, o.Dir); err != nil {
		return fmt.Errorf("sync logs: %w", err)
	}
	e.db, err = pebble.Open(o.Dir, o.pebble(e))
	if err != nil {
		return err
	}
	e.opened.Store(true)
	_, err = readFormat(e.db)
	return err
}

// syncLogs makes the contents of the logs durable. A process that was killed may have
// left records in the page cache that no sync has reached, and a read shows them.
// A writable Open writes them into tables; this takes its place here, and
// why Barrier has nothing to do. Where the file system takes no writes at all
// nothing waits to be written, so its refusal is none of the store's.
func syncLogs(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		if err := syncFile(fsys, fsys.PathJoin(dir, name)); err != nil && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	return nil
}

func syncFile(fsys vfs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readOnlyFS is a file system that changes nothing. Pebble's read-only mode asks for no change, and
// readOnlyFS refuses any.
type readOnlyFS struct{ vfs.FS }

// Lock implements vfs.FS. It makes no lock file: where there is none, no process
// has the store open. It goes on without the lock where the file system or the
// file's permissions refuse it: a process that could write could have locked.
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

// refusesWrites reports whether a lock file could not be opened for writing. That
// another process holds the lock is no *fs.PathError.
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
