package pebblestore

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Uncompressed returns options of a store whose tables contain texts uncompressed.
func Uncompressed(o Options) Options {
	o.uncompressed = true
	return o
}

// Flush writes the memtables to tables, and returns when that is done.
func (e *Engine) Flush() error { return e.db.Flush() }

// Inspect inspects a store's files as Open does before Pebble opens them. holes is the number of whole chunks after the
// end of the latest log.
func Inspect(fs vfs.FS, dir string) (holes int, err error) {
	state, _, err := readStoreFile(fs, dir)
	if err != nil {
		return 0, err
	}
	_, dropped, err := inspectDirectory(fs, dir, state)
	for _, d := range dropped {
		holes += d.Whole
	}
	return holes, err
}

// SetFormat changes the format of a store, in its file and under its key.
func (e *Engine) SetFormat(n uint64) error {
	e.file.mu.Lock()
	defer e.file.mu.Unlock()
	e.file.state.format = n
	return errors.Join(e.file.writeState(), e.db.Set(formatKey(), binary.BigEndian.AppendUint64(nil, n), pebble.Sync))
}

// CacheBytes returns the size of Pebble's cache with options.
func CacheBytes(o Options) int64 { return o.withDefaults().pebble(&Engine{}).CacheSize }
