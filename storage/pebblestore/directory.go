package pebblestore

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// directoryFS adds to Pebble's file system what Pebble does not do:
//
//   - It makes the names in a directory durable before it creates a marker there. A marker names a file that was created
//     just before in the same directory, and Pebble syncs the directory only once, after both. On a file system that does
//     not order names, a crash in between could leave a marker for a missing file.
//   - It breaks the engine if a directory cannot be synced. After a flush, Pebble would retry, although a later sync proves
//     nothing; after a marker, it would panic.
//   - It delays the creation of a table after a background job has failed.
//   - It maintains the store file along with the manifest.
//
// Files of a snapshot are in another folder and are written unchanged.
type directoryFS struct {
	vfs.FS
	engine *Engine
}

const (
	markerPrefix         = "marker."
	manifestMarkerPrefix = "marker.manifest."
	formatMarkerPrefix   = "marker.format-version."
	tableSuffix          = ".sst"
)

// Create implements vfs.FS.
func (d directoryFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !d.isOwn(name) {
		return d.FS.Create(name, category)
	}
	base := d.PathBase(name)
	if strings.HasPrefix(base, markerPrefix) {
		if err := durable.SyncDirOf(d, d.PathDir(name)); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(name, tableSuffix) {
		d.engine.failures.waitAfterFailure()
	}
	f, err := d.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	if number, ok := manifestNumber(base); ok {
		return &manifest{File: f, engine: d.engine, number: number}, nil
	}
	if strings.HasPrefix(base, manifestMarkerPrefix) {
		if number, ok := manifestNumber(base[strings.LastIndexByte(base, '.')+1:]); ok {
			d.engine.file.noteMarker(number)
		}
	}
	return f, nil
}

// manifestNumber returns the number in the name of a manifest file.
func manifestNumber(name string) (number uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, walcheck.ManifestPrefix)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

// failurePause is the delay before a table is created after a background job failed.
const failurePause = 100 * time.Millisecond

// failures tracks failures of background jobs. Pebble retries a failed flush at once, which would keep a processor busy
// while, for example, no file can be opened. So the first table that is created after a failure is delayed.
type failures struct{ pending atomic.Bool }

func (f *failures) noteFailure() { f.pending.Store(true) }

// waitAfterFailure waits if a job failed since the last call. Pebble holds no lock while it creates a table.
func (f *failures) waitAfterFailure() {
	if f.pending.Swap(false) {
		time.Sleep(failurePause)
	}
}

// OpenDir implements vfs.FS.
func (d directoryFS) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil || name != d.engine.file.dir {
		return f, err
	}
	return directory{f, d.engine}, nil
}

// Unwrap implements vfs.FS.
func (d directoryFS) Unwrap() vfs.FS { return d.FS }

// directory is the open directory of the store.
type directory struct {
	vfs.File
	engine *Engine
}

// Sync implements vfs.File.
func (d directory) Sync() error {
	if err := d.File.Sync(); err != nil {
		return d.engine.breakEngine(fmt.Errorf("sync directory: %w", err))
	}
	if err := d.engine.file.directorySynced(); err != nil {
		return d.engine.breakEngine(err)
	}
	return nil
}

// manifest is a manifest being written, by one goroutine at a time.
type manifest struct {
	vfs.File
	engine *Engine
	number uint64
	length int64
}

// Write implements vfs.File.
func (m *manifest) Write(p []byte) (int, error) {
	n, err := m.File.Write(p)
	m.length += int64(n)
	return n, err
}

// Sync implements vfs.File.
func (m *manifest) Sync() error {
	if err := m.File.Sync(); err != nil {
		return err
	}
	return m.engine.file.noteSynced(m.number, m.length)
}
