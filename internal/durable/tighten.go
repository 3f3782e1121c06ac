package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// othersRights are the permissions of all users except the owner.
const othersRights fs.FileMode = 0o077

// TightenDir tightens a folder and all files and folders in it. It ignores files that are removed in the meantime. If a
// file belongs to another owner, TightenDir tightens all other files first and then returns fs.ErrPermission (wrapped).
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
			err = tightenMode(path)
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

// tightenMode removes the access of groups and other users to a folder or file.
func tightenMode(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&othersRights == 0 {
		return err
	}
	if info.IsDir() {
		return os.Chmod(path, DirMode)
	}
	return os.Chmod(path, FileMode)
}

// TightenFile tightens one file. A missing file is no error; other errors are the same as for TightenDir.
func TightenFile(path string) error {
	if err := tightenMode(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
