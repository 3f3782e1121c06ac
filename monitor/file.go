package monitor

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile puts content in the place of a file, or makes it: whoever reads the
// file, also after a crash, finds the old content or the new one.
func replaceFile(name string, content []byte) error {
	folder := filepath.Dir(name)
	next, err := os.CreateTemp(folder, "."+filepath.Base(name)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	if err := os.Rename(next.Name(), name); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return syncFolder(folder)
}

// syncFolder makes renames and new files in a folder durable.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
