// Package durable writes files that survive a crash of the machine, keeps files and folders
// private to their owner, and locks a folder for one process (AcquireLock).
//
// Invariants:
//
//   - After ReplaceFile, CreateFile, Commit and Rename have returned nil, a crash of the machine
//     leaves the new content at the path. Before that it leaves the old content or the new one,
//     never a part.
//   - Files are made with mode 0600 and folders with mode 0700, under any umask. Tightening
//     removes the rights of groups and other users, and adds no rights.
//   - Tightening follows no link but the folder that is named.
package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Modes of folders and files.
const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// File is an open file or folder.
type File interface {
	io.Closer
	Sync() error
}

// FileSystem is the part of a file system that Commit uses. Tests pass one that loses
// unsynced writes.
type FileSystem[F File] interface {
	Rename(from, to string) error
	OpenDir(name string) (F, error)
}

// systemFiles is the file system of the machine.
type systemFiles struct{}

func (systemFiles) Rename(from, to string) error          { return os.Rename(from, to) }
func (systemFiles) OpenDir(name string) (*os.File, error) { return os.Open(name) }

// Commit syncs and closes f, which was written as temp, and gives it the name path.
func Commit[F File](files FileSystem[F], f F, temp, path string) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := files.Rename(temp, path); err != nil {
		return err
	}
	return SyncDirOf(files, filepath.Dir(path))
}

// SyncDirOf makes the names of new, renamed and removed files in a folder durable.
func SyncDirOf[F File](files FileSystem[F], dir string) error {
	f, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncDir is SyncDirOf on the file system of the machine.
func SyncDir(dir string) error { return SyncDirOf(systemFiles{}, dir) }

// Rename gives a synced file or folder another name, durably.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// TemporarySuffix ends the names of the files that ReplaceFile writes. A crash may leave
// one behind.
const TemporarySuffix = ".new"

// ReplaceFile puts content in the place of the file at path, or makes the file.
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

// CreateFile makes the file at path with content; fs.ErrExist (wrapped) when there is
// one. A file that can't be written to its end is removed.
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

// Temporary is a file that is going to take the place of another one. Its owner may
// keep it open after that.
type Temporary struct {
	*os.File
	path string
}

// NewTemporary makes an empty file in the folder of path. Its name follows pattern, in
// which "*" becomes random. A crash may leave the file behind.
func NewTemporary(path, pattern string) (*Temporary, error) {
	f, err := os.CreateTemp(filepath.Dir(path), pattern) // mode 0600
	if err != nil {
		return nil, err
	}
	return &Temporary{File: f, path: path}, nil
}

// MoveToPath renames the file, which MUST be synced, to its path. The new name is
// durable after SyncDir.
func (t *Temporary) MoveToPath() error { return os.Rename(t.Name(), t.path) }

// Discard closes and removes the file. A file that is closed or was moved is no error.
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
