package pebblestore

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/durable"
)

// privateFS creates files that only their owner can access. Pebble would create files that all users can read, as far
// as the umask allows.
type privateFS struct{ vfs.FS }

// Create implements vfs.FS.
func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, category)
	return owned(f, name, err)
}

// OpenReadWrite implements vfs.FS.
func (p privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := p.FS.OpenReadWrite(name, category, opts...)
	return owned(f, name, err)
}

// ReuseForWrite implements vfs.FS.
func (p privateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(oldname, newname, category)
	return owned(f, newname, err)
}

// Lock implements vfs.FS.
func (p privateFS) Lock(name string) (io.Closer, error) {
	l, err := p.FS.Lock(name)
	return owned(l, name, err)
}

// Unwrap implements vfs.FS.
func (p privateFS) Unwrap() vfs.FS { return p.FS }

// owned restricts an opened file to its owner. A file of another owner is left unchanged; the engine has already logged
// a warning.
func owned[F io.Closer](f F, name string, err error) (F, error) {
	if err != nil {
		return f, err
	}
	if err := durable.TightenFile(name); err != nil && !errors.Is(err, os.ErrPermission) {
		var none F
		return none, errors.Join(err, f.Close())
	}
	return f, nil
}
