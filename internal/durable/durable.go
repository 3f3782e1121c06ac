// Package durable takes away from groups and other users what they may do with the
// folders and files of a program.
//
// Invariants:
//
//   - A folder gets mode 0700 and a file 0600, whatever the umask is and whatever
//     somebody made of them. What has no more than that stays as it is.
//   - Links are not followed, but for the folder that is named.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Modes of folders and files.
const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// others are the rights of everybody but the owner.
const others fs.FileMode = 0o077

// TightenDir tightens a folder and all files and folders in it. A file that went away
// meanwhile is none of its business. fs.ErrPermission (wrapped) for what belongs to
// somebody else; all that can be tightened is, also then.
func TightenDir(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var refused error
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			err = tighten(path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrPermission):
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(err, refused)
}

// tighten tightens one folder or file.
func tighten(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&others == 0 {
		return err
	}
	if info.IsDir() {
		return os.Chmod(path, DirMode)
	}
	return os.Chmod(path, FileMode)
}

// TightenFile tightens one file, which need not be there; errors are those of
// TightenDir.
func TightenFile(path string) error {
	if err := tighten(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
