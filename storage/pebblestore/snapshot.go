package pebblestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/durable"
)

// Snapshot creates a store in dir that contains everything that was durable before the call, and possibly some of what
// was written during it. If dir is on the same volume, tables are hard links, so they take no space until the store
// drops them. Reads and writes continue in the meantime. The parent of dir must exist, and dir must not. After an
// error, dir is removed.
//
// When Snapshot returns nil, everything in the snapshot is also durable in the store, so a crash of the store cannot
// lose a head that was read from the snapshot.
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
		err = e.Barrier(ctx) // the copied logs may contain records that were not synced
	}
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), fs.RemoveAll(dir))
	}
	return nil
}

// writeSnapshotState writes the store file of a snapshot. It records no manifest, because the snapshot's manifest is a
// copy.
func writeSnapshotState(fs vfs.FS, dir string, format uint64) error {
	made := &storeFile{fs: fs, dir: dir, state: storeState{format: format}}
	if err := made.makeFile(fs.PathJoin(dir, storeFileName)); err != nil {
		return err
	}
	return durable.SyncDirOf(fs, fs.PathDir(dir))
}

// isOwn reports whether a file is in the folder of the store, rather than in a snapshot.
func (d directoryFS) isOwn(name string) bool { return d.PathDir(name) == d.engine.file.dir }
