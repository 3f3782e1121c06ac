// Package durable writes files that survive a crash of the machine, keeps files and folders private to their owner, and
// locks a folder for one process (AcquireLock).
//
// Invariants:
//
//   - After ReplaceFile, CreateFile, Commit or Rename has returned nil, a crash leaves the new content at the path. A crash
//     before that leaves the old content or the new one, never a mixture or a part.
//   - Files are created with mode 0600 and folders with mode 0700, whatever the umask is. Tightening removes the access of
//     groups and other users, and grants none.
//   - Tightening follows no symbolic link except the named folder itself.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Modes of new folders and files.
const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// File is an open file or folder.
type File interface {
	io.Closer
	Sync() error
}

// FileSystem is the part of a file system that Commit needs. Tests pass one that loses unsynced writes.
type FileSystem[F File] interface {
	Rename(from, to string) error
	OpenDir(name string) (F, error)
}

// systemFiles is the operating system's file system.
type systemFiles struct{}

func (systemFiles) Rename(from, to string) error          { return os.Rename(from, to) }
func (systemFiles) OpenDir(name string) (*os.File, error) { return os.Open(name) }

// Commit syncs and closes f, which was written under the name temp, and renames it to path. The new name is durable
// when Commit returns nil.
func Commit[F File](files FileSystem[F], f F, temp, path string) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := files.Rename(temp, path); err != nil {
		return err
	}
	return SyncDirOf(files, filepath.Dir(path))
}

// SyncDirOf syncs a folder, which makes the names of its new, renamed and removed files durable.
func SyncDirOf[F File](files FileSystem[F], dir string) error {
	f, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncDir is SyncDirOf on the operating system's file system.
func SyncDir(dir string) error { return SyncDirOf(systemFiles{}, dir) }

// Rename renames a file or folder that is already synced, and makes the new name durable.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// TemporarySuffix is the suffix of the temporary files of ReplaceFile. A crash may leave one in the folder.
const TemporarySuffix = ".new"

// ReplaceFile atomically replaces the content of the file at path, or creates it.
func ReplaceFile(path string, content []byte) error {
	t, err := NewTemporary(path, "."+filepath.Base(path)+"-*"+TemporarySuffix)
	if err != nil {
		return err
	}
	_, err = t.Write(content)
	if err == nil {
		err = Commit(systemFiles{}, t.File, t.Name(), path)
	}
	if err != nil {
		return errors.Join(err, t.Discard())
	}
	return nil
}

// CreateFile creates the file at path with content. It returns fs.ErrExist (wrapped) if the file exists. If the content
// cannot be written completely, the file is removed.
func CreateFile(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return SyncDir(filepath.Dir(path))
}

// Temporary is a file that will replace another one. It can stay open after the replacement.
type Temporary struct {
	*os.File
	path string
}

// NewTemporary creates an empty file in the folder of path. Its name follows pattern, in which "*" is replaced by
// random characters (os.CreateTemp). A crash may leave the file in the folder.
func NewTemporary(path, pattern string) (*Temporary, error) {
	f, err := os.CreateTemp(filepath.Dir(path), pattern) // mode 0600
	if err != nil {
		return nil, err
	}
	return &Temporary{File: f, path: path}, nil
}

// MoveToPath renames the file to its path. The file must be synced first. The new name is durable after SyncDir.
func (t *Temporary) MoveToPath() error { return os.Rename(t.Name(), t.path) }

// Discard closes and removes the file. It is no error if the file is already closed or was moved.
func (t *Temporary) Discard() error {
	closeErr, removeErr := t.Close(), os.Remove(t.Name())
	if errors.Is(closeErr, fs.ErrClosed) {
		closeErr = nil
	}
	if errors.Is(removeErr, fs.ErrNotExist) {
		removeErr = nil
	}
	return errors.Join(closeErr, removeErr)
}
