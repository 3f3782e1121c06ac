package log

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/lockfile"
	"github.com/agentledger/agentledger/tlog"
)

// anchorEvery is how far the anchors may lie behind the published states.
const anchorEvery = time.Second

// Anchors remember the newest checkpoints that were shown, apart from the
// ledgers themselves, so that a store that was rolled back is noticed. They lie
// in one folder, in production on another volume than the store, as an
// append-only journal with a checksum on each note (see journal).
//
// Notes are written together, with one sync, at most once a second and at the
// end. Only the newest size and root of each origin stay in memory.
//
// One process has a folder of anchors at a time: two would overwrite each other's
// notes, and of two that use one database nobody else on this machine would know.
type Anchors struct {
	lock    *os.File
	mu      sync.Mutex
	journal *journal
	known   map[anchorKey]anchor

	dirtyMu sync.Mutex
	dirty   map[*ledger]struct{}
	since   time.Time // when the first of dirty was touched
	writing time.Time // since of what is being written, zero when nothing is
}

type (
	anchorKey [16]byte // of SHA-256(origin)
	anchor    struct {
		size id.Index
		root id.Hash
	}
)

func keyOf(o id.Origin) anchorKey {
	h := sha256.Sum256([]byte(o))
	return anchorKey(h[:16])
}

// OpenAnchors opens or makes the anchors in dir. A damaged journal is an error;
// only an unfinished note at its very end, as a crash leaves it, is cut off.
func OpenAnchors(dir string) (*Anchors, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	a := &Anchors{known: make(map[anchorKey]anchor), dirty: make(map[*ledger]struct{})}
	var err error
	if a.lock, err = lockfile.Hold(filepath.Join(dir, "lock")); err != nil {
		if errors.Is(err, lockfile.ErrHeld) {
			err = errors.New("another process uses them: stop the server")
		}
		return nil, fmt.Errorf("open anchors in %s: %w", dir, err)
	}
	if err := a.read(dir); err != nil {
		return nil, errors.Join(err, a.lock.Close())
	}
	return a, nil
}

// read opens the journal and reads it.
func (a *Anchors) read(dir string) error {
	j, err := openJournal(filepath.Join(dir, "anchors.journal"), func(note []byte) error {
		c, err := tlog.ReadCheckpoint(note)
		if err == nil {
			a.remember(c)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("open anchors: %w", err)
	}
	a.journal = j
	if j.notes > 4*len(a.known)+1024 {
		err = j.compact(a.newest)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open anchors: compact: %w", err), j.close())
	}
	return nil
}

// remember keeps the largest checkpoint of each origin: a ledger that was
// dropped from memory and read again may be written in either order.
func (a *Anchors) remember(c tlog.Checkpoint) {
	key := keyOf(c.Origin)
	if old, ok := a.known[key]; ok && old.size > c.Size {
		return
	}
	a.known[key] = anchor{size: c.Size, root: c.Root}
}

// newest reports whether a note is the newest one of its origin.
func (a *Anchors) newest(note []byte) bool {
	c, err := tlog.ReadCheckpoint(note)
	return err == nil && a.known[keyOf(c.Origin)] == anchor{size: c.Size, root: c.Root}
}

// Close closes anchors that were not handed to Open.
func (a *Anchors) Close() error { return a.close() }

// find returns the anchor of an origin.
func (a *Anchors) find(o id.Origin) (anchor, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[keyOf(o)]
	return found, ok
}

// without returns the origins that have an anchor and are not among met, in the
// order in which they were first shown.
func (a *Anchors) without(met map[anchorKey]bool) (lost []id.Origin, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := make(map[anchorKey]bool)
	err = a.journal.each(func(note []byte) error {
		c, err := tlog.ReadCheckpoint(note)
		if key := keyOf(c.Origin); err == nil && !met[key] && !told[key] {
			told[key] = true
			lost = append(lost, c.Origin)
		}
		return err
	})
	return lost, err
}

// Size returns the size of the newest checkpoint of an origin that was shown, as far
// as the anchors know; ok is false when they know of none.
func (a *Anchors) Size(o id.Origin) (size id.Index, ok bool) {
	found, ok := a.find(o)
	return found.size, ok
}

// any reports whether there is an anchor at all.
func (a *Anchors) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.known) > 0
}

// put makes notes the anchors of their origins; they are durable at return.
func (a *Anchors) put(notes ...[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	checkpoints := make([]tlog.Checkpoint, len(notes))
	for i, n := range notes {
		var err error
		if checkpoints[i], err = tlog.ReadCheckpoint(n); err != nil {
			return fmt.Errorf("write anchors: %w", err)
		}
	}
	if err := a.journal.append(notes); err != nil {
		return fmt.Errorf("write anchors: %w", err)
	}
	for _, c := range checkpoints {
		a.remember(c)
	}
	return nil
}

// touch says that a ledger has a newer state than its anchor.
func (a *Anchors) touch(led *ledger) {
	a.dirtyMu.Lock()
	if len(a.dirty) == 0 {
		a.since = time.Now()
	}
	a.dirty[led] = struct{}{}
	a.dirtyMu.Unlock()
}

// lag returns for how long the oldest newer state has been waiting for its anchor.
func (a *Anchors) lag() time.Duration {
	a.dirtyMu.Lock()
	defer a.dirtyMu.Unlock()
	switch {
	case !a.writing.IsZero():
		return time.Since(a.writing)
	case len(a.dirty) > 0:
		return time.Since(a.since)
	}
	return 0
}

// flush writes the anchors of all touched ledgers.
func (a *Anchors) flush() error {
	a.dirtyMu.Lock()
	dirty := a.dirty
	if len(dirty) == 0 {
		a.dirtyMu.Unlock()
		return nil
	}
	a.dirty, a.writing = make(map[*ledger]struct{}), a.since
	a.dirtyMu.Unlock()
	notes := make([][]byte, 0, len(dirty))
	for led := range dirty {
		notes = append(notes, led.published.Load().Checkpoint())
	}
	err := a.put(notes...)
	a.written(dirty, err)
	return err
}

// written ends a flush. What could not be written is as old as it was.
func (a *Anchors) written(dirty map[*ledger]struct{}, err error) {
	a.dirtyMu.Lock()
	defer a.dirtyMu.Unlock()
	if err != nil {
		maps.Copy(a.dirty, dirty)
		a.since = a.writing
	}
	a.writing = time.Time{}
}

// run flushes until ctx ends.
func (a *Anchors) run(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(anchorEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := a.flush(); err != nil {
				logger.Error("anchors not written", "err", err)
			}
		}
	}
}

func (a *Anchors) close() error {
	err := a.flush()
	a.mu.Lock()
	defer a.mu.Unlock()
	if closeErr := errors.Join(a.journal.close(), a.lock.Close()); err == nil {
		err = closeErr
	}
	return err
}
