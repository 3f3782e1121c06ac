package pebblestore

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// markerFS makes the names in a directory durable before a marker is made in it.
// Pebble's markers name a file that was made just before, in the same directory,
// and syncs the directory once, behind both: on a file system that keeps no order
// among names, a crash between could leave a marker for a file that is not there.
type markerFS struct{ vfs.FS }

// Create implements vfs.FS.
func (m markerFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(m.PathBase(name), "marker.") {
		if err := syncDir(m.FS, m.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return m.FS.Create(name, category)
}

// Unwrap implements vfs.FS.
func (m markerFS) Unwrap() vfs.FS { return m.FS }

func syncDir(fs vfs.FS, dir string) error {
	f, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
