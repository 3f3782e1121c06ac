package pebblestore

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Uncompressed returns options of a store whose tables hold texts as they are.
func Uncompressed(o Options) Options {
	o.uncompressed = true
	return o
}

// Flush writes what is in memory to tables, and returns when that is done.
func (e *Engine) Flush() error { return e.db.Flush() }

// Inspect is the look at a store's files before Pebble opens them. holes is how many
// whole chunks lie behind the end of the newest log.
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

// SetFormat makes a store one of another format, by its file and by its key.
func (e *Engine) SetFormat(n uint64) error {
	e.file.mu.Lock()
	defer e.file.mu.Unlock()
	e.file.state.format = n
	return errors.Join(e.file.writeState(), e.db.Set(formatKey(), binary.BigEndian.AppendUint64(nil, n), pebble.Sync))
}

// DamagedBlocks is how many damaged blocks are known.
func (e *Engine) DamagedBlocks() int { return e.damaged.Count() }

// CacheBytes returns the size of Pebble's cache with options.
func CacheBytes(o Options) int64 { return o.withDefaults().pebble(&Engine{}).CacheSize }
