package pebblestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/durable"
)

// Snapshot makes a store in dir that has all that was durable before the call, and maybe more of what came during it.
// Tables are hard links where dir is on the same volume, so they take no room until the store drops them. Reads and
// writes go on meanwhile. The folder above dir must exist, and dir must not. What an error leaves is removed.
//
// All that the snapshot has is durable in the store too when Snapshot returns nil, so a head that was read from the
// snapshot is never taken away from the store by a crash.
func (e *Engine) Snapshot(ctx context.Context, dir string) error {
	if err := e.Barrier(ctx); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	defer e.endCall()
	fs := e.file.fs
	if _, err := fs.Stat(fs.PathDir(dir)); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := e.db.Checkpoint(dir); err != nil {
		return fmt.Errorf("snapshot: %w", readError(err))
	}
	err := writeSnapshotState(fs, dir, e.file.storeFormat())
	if err == nil {
		err = e.Barrier(ctx) // the copied logs may have records that no sync had reached
	}
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), fs.RemoveAll(dir))
	}
	return nil
}

// writeSnapshotState writes the store file of a new store. It knows of no manifest, because that of the snapshot is a
// copy, which is whole once the snapshot is.
func writeSnapshotState(fs vfs.FS, dir string, format uint64) error {
	made := &storeFile{fs: fs, dir: dir, state: storeState{format: format}}
	if err := made.makeFile(fs.PathJoin(dir, storeFileName)); err != nil {
		return err
	}
	return durable.SyncDirOf(fs, fs.PathDir(dir))
}

// isOwn reports whether a file lies in the folder of the store, and not in that of a snapshot.
func (d directoryFS) isOwn(name string) bool { return d.PathDir(name) == d.engine.file.dir }
