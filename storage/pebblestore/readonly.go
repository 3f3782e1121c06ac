package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/durable"
)

// enterWrite is beginCall for calls that write.
func (e *Engine) enterWrite(ctx context.Context) error {
	if err := e.beginCall(ctx); err != nil {
		return err
	}
	if e.readOnly {
		e.endCall()
		return errReadOnly
	}
	return nil
}

// openReadOnly opens an existing store. Pebble replays the logs into memory and leaves all files unchanged.
func (e *Engine) openReadOnly(o Options, exists bool) (err error) {
	if !exists {
		return fmt.Errorf("there is no store in %s: %w", o.Dir, os.ErrNotExist)
	}
	if err := syncLogs(o.FS, o.Dir); err != nil {
		return fmt.Errorf("sync logs: %w", err)
	}
	e.db, err = pebble.Open(o.Dir, o.pebble(e))
	if err != nil {
		return openError(o.Dir, err)
	}
	e.opened.Store(true)
	_, err = readFormat(e.db)
	return err
}

// syncLogs makes the contents of the logs durable. A killed process may have left records in the page cache that were
// never synced, and reads show them. A writable Open would write them to tables. This sync replaces that, and is why
// Barrier has nothing to do. A read-only file system has nothing left to write, so EROFS is ignored.
func syncLogs(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		if err := syncFile(fsys, fsys.PathJoin(dir, name)); err != nil && !errors.Is(err, syscall.EROFS) {
			return err
		}
	}
	return nil
}

func syncFile(fsys vfs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// tightenDir restricts the directory and files of an existing store to their owner.
func tightenDir(o Options) error {
	if _, real := o.FS.(privateFS); !real {
		return nil
	}
	err := durable.TightenDir(o.Dir)
	if errors.Is(err, os.ErrPermission) {
		o.Logger.Warn("files of the store belong to another user, so other users may have access to them", slog.Any("err", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("restrict access to directory: %w", err)
	}
	return nil
}
