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

// openReadOnly opens an existing store. Pebble replays the logs into memory and leaves every file as it is.
func (e *Engine) openReadOnly(o Options, exists bool) (err error) {
	if !exists {
		return fmt.Errorf("no store in %s: %w", o.Dir, os.ErrNotExist)
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

// syncLogs makes the contents of the logs durable. A process that was killed may have left records in the page cache
// that no sync has reached, and a read shows them. A writable Open writes them into tables; this takes its place
// here, and why Barrier has nothing to do. Where the file system takes no writes at all nothing waits to be written,
// so its refusal is none of the store's.
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
		o.Logger.Warn("files of the store belong to another user, so others may have rights to them", slog.Any("err", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("tighten directory: %w", err)
	}
	return nil
}
