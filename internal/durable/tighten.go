package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// othersRights are the rights of all users but the owner.
const othersRights fs.FileMode = 0o077

// TightenDir tightens a folder and all files and folders in it. It ignores files that
// are removed meanwhile. Files of another owner are reported as fs.ErrPermission
// (wrapped), after all other files were tightened.
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

// tightenMode removes the rights of groups and other users from a folder or file.
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

// TightenFile tightens one file, which may be absent; errors are those of TightenDir.
func TightenFile(path string) error {
	if err := tightenMode(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
