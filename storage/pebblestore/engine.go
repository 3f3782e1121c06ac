// Package pebblestore is the storage engine for one process: a Pebble (https://github.com/cockroachdb/pebble, v2) key-value
// store in one directory. It hides keys, value formats and Pebble itself behind storage.Engine.
//
// Invariants:
//
//   - One Append is at most one write to the log and one sync, for any number of tenants.
//   - Writes are ordered by one mutex: checks see everything that was applied before, and a write is never durable without
//     the earlier ones.
//   - The store uses Pebble's newest format, which refuses to open a write-ahead log with a damaged block in the middle.
//     Older formats take such a block for the torn end of the log and silently drop acknowledged events.
//   - A failed sync or manifest write breaks the engine: every waiting call and every later call returns storage.ErrBroken.
//     Nothing is retried.
//   - Only one process at a time has a directory open.
//   - A store is rejected before any file is changed if a part is missing, or if data that acknowledged writes depend on is
//     damaged, as far as loss and damage differ from what a crash leaves (inspectDirectory, package walcheck). A store with
//     an unknown format is rejected too.
//   - A store that is open read-only is not changed by a single byte, and every write returns storage.ErrReadOnly.
//   - Files are created with access only for their owner.
//   - Every value is checked against its format before it is used. If it does not match, the error is storage.ErrCorrupt.
package pebblestore

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// Engine is a storage.Engine on a Pebble store.
type Engine struct {
	db    *pebble.DB
	file  *storeFile
	lock  *pebble.Lock
	calls syncs.InFlight

	readOnly bool
	opened   atomic.Bool // until it is set, a failed flush breaks the engine
	broken   atomic.Pointer[brokenError]
	failures failures // of background jobs
	onBroken func(error)

	write struct {
		sync.Mutex                    // held by a writer from the checks to the apply
		heads      map[id.Tenant]head // applied heads; a cache of at most maxHeads
		last       *commit            // the latest commit; nil before the first
		writer     writer
		watches    map[storage.Kind][]*atomic.Uint64 // see WatchKinds
	}
	erasures erasedCounter // changed under the write lock
	unsynced unsynced
	recent   *recentNames
	names    *nameFilter // written under the write lock
}

var _ storage.Engine = (*Engine)(nil)

// Open opens the store in o.Dir. It creates the store if there is none, unless o.ReadOnly is set.
func Open(o Options) (*Engine, error) {
	o = o.withDefaults()
	if o.ReadOnly {
		o.FS = readOnlyFS{FS: o.FS}
	} else if err := makeDirectory(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("open store: create directory: %w", err)
	}
	lock, err := pebble.LockDirectory(o.Dir, o.FS)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", lockError(o.Dir, err))
	}
	if !o.ReadOnly {
		if err := tightenDir(o); err != nil {
			return nil, errors.Join(fmt.Errorf("open store: %w", err), lock.Close())
		}
	}
	e := &Engine{lock: lock, file: &storeFile{fs: o.FS, dir: o.Dir}, readOnly: o.ReadOnly, onBroken: o.OnBroken, recent: new(recentNames)}
	e.names = newNameFilter()
	e.write.heads = make(map[id.Tenant]head)
	e.unsynced.records = make(map[string]*commit)
	if err := e.openStore(o); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", readError(err)), e.closeFiles())
	}
	return e, nil
}

// lockError explains why a store could not be locked: another process has the store open, or the lock file could not be
// opened.
func lockError(dir string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("cannot open the lock file of %s: %w", dir, err)
	}
	return fmt.Errorf("%s is in use: %w: %w", dir, ErrInUse, err)
}

// ErrInUse is returned by Open if another process has the store open.
var ErrInUse = errors.New("another process has opened it")

// openStore inspects the files before Pebble opens them, because Pebble deletes files that it considers unused.
func (e *Engine) openStore(o Options) error {
	state, found, err := readStoreFile(o.FS, o.Dir)
	if err != nil {
		return err
	}
	exists, dropped, err := inspectDirectory(o.FS, o.Dir, state)
	if err != nil {
		return err
	}
	for _, d := range dropped {
		d.LogWarning(o.Logger)
	}
	if o.ReadOnly {
		e.file.state.format = max(state.format, formatNumber)
		return e.openReadOnly(o, exists)
	}
	if exists && !found {
		if err := e.peekFormat(o); err != nil {
			return err
		}
	}
	if err := e.file.openFile(state, found); err != nil {
		return err
	}
	if err := e.openPebble(o, exists); err != nil {
		return err
	}
	if err := e.keepFormat(); err != nil {
		return err
	}
	return e.erasures.Load(e.db, erasuresKey(), e.file.storeFormat() >= formatErased)
}

// openPebble opens a store twice if it is new or in an older format of Pebble. Pebble raises the format only after it
// has started a log, so with a single open the first log would still be in the old form, in which damage goes
// unnoticed.
func (e *Engine) openPebble(o Options, exists bool) error {
	found, err := pebble.Peek(o.Dir, o.FS)
	if err != nil {
		return err
	}
	if !exists || found.FormatMajorVersion < pebble.FormatNewest {
		db, err := pebble.Open(o.Dir, o.pebble(e))
		if err != nil {
			return openError(o.Dir, err)
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	e.db, err = pebble.Open(o.Dir, o.pebble(e))
	e.opened.Store(err == nil)
	return openError(o.Dir, err)
}

// tableInError matches the error of Pebble's check of the tables when it opens a store.
var tableInError = regexp.MustCompile(`(?m)^L\d+: (\d+): (.*)$`)

// openError adds the file and the remedy to an error about a damaged store. It returns other errors unchanged.
func openError(dir string, err error) error {
	if err == nil {
		return nil
	}
	if table := tableInError.FindStringSubmatch(err.Error()); table != nil {
		return corruptValue(fmt.Sprintf("the table %s.sst in %s is missing or damaged (%s): %s", table[1], dir, table[2], walcheck.Remedy))
	}
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("a file in %s is damaged: %w: %s", dir, readError(err), walcheck.Remedy)
	}
	return err
}

// makeDirectory durably creates dir and its parents: a directory's name is durable once its parent is synced.
func makeDirectory(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	above := fs.PathDir(dir)
	if above != dir {
		if err := makeDirectory(fs, above); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.SyncDirOf(fs, above)
}

// Close waits for the calls in flight and closes the store. It leaves a broken engine open, with its directory locked:
// the process has to exit.
func (e *Engine) Close() error {
	if !e.calls.Close() {
		return errClosed
	}
	e.write.Lock()
	defer e.write.Unlock()
	if err := e.write.last.waitDurable(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	err := e.brokenCause()
	if err == nil && !e.readOnly {
		err = e.sealLogTail()
	}
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	if err := e.closeFiles(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// closeFiles closes the open files of the store.
func (e *Engine) closeFiles() error {
	var err error
	if e.db != nil {
		err = e.db.Close()
	}
	return errors.Join(err, e.file.closeFile(), e.lock.Close())
}
