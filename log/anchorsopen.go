package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/lockfile"
)

const anchorJournal = "anchors.journal"

// OpenAnchors opens or makes the anchors in dir. A damaged journal is an error;
// only an unfinished note at its very end, as a crash leaves it, is cut off. Nothing
// is compacted here, so that a full volume keeps no service from starting.
func OpenAnchors(dir string) (*Anchors, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	if err := durable.TightenDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) { // of another owner: not ours to change
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	lock, err := lockfile.Hold(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, openAnchorsError(dir, err)
	}
	a := newAnchors(dir, lock)
	if err := a.loadAll(openJournal); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	return a, removeRewrites(dir)
}

// OpenAnchorsReadOnly opens the anchors in dir for whoever only compares with them:
// nothing is written, made or cut off, and a folder that is not there has no anchors.
// Ledgers that are opened with them take no events. It is refused while another
// process uses the anchors, as far as their lock file can be opened.
func OpenAnchorsReadOnly(dir string) (*Anchors, error) {
	lock, err := lockfile.HoldExisting(filepath.Join(dir, "lock"))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, openAnchorsError(dir, err)
	}
	a := newAnchors(dir, lock)
	a.readOnly = true
	if err := a.loadAll(openJournalReadOnly); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	return a, nil
}

func newAnchors(dir string, lock *os.File) *Anchors {
	return &Anchors{dir: dir, lock: lock, dirty: make(map[*ledger]struct{})}
}

type openFunc func(path string, each func([]byte) error) (*journal, error)

// loadAll opens both journals at once. When one of them can't be opened, nothing is
// left open.
func (a *Anchors) loadAll(open openFunc) error {
	named := make(chan error)
	go func() { named <- a.loadNames(open) }()
	err := a.load(open)
	if err = errors.Join(err, <-named); err != nil {
		return errors.Join(err, a.release())
	}
	return nil
}

// release closes what is open.
func (a *Anchors) release() (err error) {
	a.closed = true
	for _, j := range []*journal{a.journal, a.names} {
		if j != nil {
			err = errors.Join(err, j.close())
		}
	}
	return errors.Join(err, a.unlock())
}

func (a *Anchors) path(name string) string { return filepath.Join(a.dir, name) }

// load opens the journal of the anchors. Notes are read and hashed by one goroutine and kept by
// another: of a million origins each takes about half of the time.
func (a *Anchors) load(open openFunc) (err error) {
	path := a.path(anchorJournal)
	a.known = make(map[anchorKey]anchor, likelyOrigins(path))
	batches := make(chan []keyedAnchor, 4)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		for batch := range batches {
			for _, k := range batch {
				a.remember(k.key, k.anchor)
			}
		}
	}()
	batch := make([]keyedAnchor, 0, loadBatch)
	a.journal, err = open(path, func(note []byte) error {
		k, err := readKeyed(note)
		if batch = append(batch, k); len(batch) == loadBatch {
			batches <- batch
			batch = make([]keyedAnchor, 0, loadBatch)
		}
		return err
	})
	batches <- batch
	close(batches)
	<-kept
	return err
}

const (
	loadBatch  = 1 << 10 // notes
	usualNote  = 280     // bytes, with the line in front of it
	mostLikely = 1 << 20 // origins that memory is taken for before they are read
)

// likelyOrigins guesses how many origins a journal has that is not longer than
// isLong lets it become. The guess costs memory or time when it is wrong.
func likelyOrigins(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return min(max(int(info.Size()/usualNote)-spareNotes, 0)*2/3, mostLikely)
}

func openAnchorsError(dir string, err error) error {
	if errors.Is(err, lockfile.ErrHeld) {
		err = errors.New("another process uses them: stop the server")
	}
	return fmt.Errorf("open anchors in %s: %w", dir, err)
}

// removeRewrites takes away what compactions that a crash ended have left.
func removeRewrites(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, rewriting))
	if err != nil {
		return fmt.Errorf("open anchors: %w", err)
	}
	for _, path := range left {
		_ = os.Remove(path) // it takes space, and is in nobody's way
	}
	return nil
}

// Close closes anchors that were not handed to Open.
func (a *Anchors) Close() error { return a.close() }

func (a *Anchors) close() error {
	err := errors.Join(a.bringBack(), a.flush())
	a.mu.Lock()
	defer a.mu.Unlock()
	if closeErr := a.release(); err == nil {
		err = closeErr
	}
	return err
}

// bringBack writes the journal anew if it was removed since the last look.
func (a *Anchors) bringBack() error {
	if a.readOnly {
		return nil
	}
	if there, err := a.inPlace(); there || err != nil {
		return err
	}
	return a.restore(context.Background())
}

func (a *Anchors) unlock() error {
	if a.lock == nil {
		return nil
	}
	return a.lock.Close()
}
