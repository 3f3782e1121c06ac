package pebblestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// reusedLogs is the number of old logs that Pebble keeps in order to reuse their files, plus the current log.
const reusedLogs = memTablesQueued + 2

// Compact rewrites the store so that no file contains an envelope that was erased before the call. Reads and writes
// continue in the meantime. Pebble deletes the old files in the background, at the latest when the store is closed.
// Each flush ends the oldest log; log files are not reused in a store with erased events (ReuseForWrite).
func (e *Engine) Compact(ctx context.Context) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	defer e.endCall()
	erasures := e.erasures.Count()
	err := e.rewriteFiles(ctx)
	if err == nil {
		e.write.Lock()
		err = e.erasures.Forget(e.db, erasuresKey(), erasures)
		e.write.Unlock()
	}
	if err != nil {
		return fmt.Errorf("compact: %w", readError(err))
	}
	return nil
}

func (e *Engine) rewriteFiles(ctx context.Context) error {
	format := binary.BigEndian.AppendUint64(nil, e.file.storeFormat())
	for range reusedLogs {
		if err := errors.Join(e.db.Set(formatKey(), format, pebble.Sync), e.db.Flush()); err != nil {
			return err
		}
	}
	return e.db.Compact(ctx, []byte{0}, bytes.Repeat([]byte{0xff}, prefixLen), false)
}

// Erasures implements backup.CompactionStore. It survives a restart: if a store was compacted after its last erasure,
// it returns 0.
func (e *Engine) Erasures() uint64 { return e.erasures.Count() }

func (s *storeFile) storeFormat() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.format
}

// ReuseForWrite implements vfs.FS. In a store with erased events it creates a new file, because the rest of a reused
// log file would still contain old texts.
func (d directoryFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.engine.file.storeFormat() < formatErased {
		return d.FS.ReuseForWrite(oldname, newname, category)
	}
	if err := d.Remove(oldname); err != nil {
		return nil, err
	}
	return d.Create(newname, category)
}
