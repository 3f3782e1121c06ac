package log

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/lockfile"
)

const (
	// anchorEvery is how far the anchors may lie behind the published states.
	anchorEvery = time.Second

	// spareNotes is how many notes more than three for two origins a journal may hold:
	// about 5 MB, which 300 organizations that are always busy write in a minute.
	spareNotes = 16 << 10

	// upkeepRest is the time until a rewrite that failed is tried again.
	upkeepRest = time.Minute
)

// upkeep is what goes on with anchors while the ledgers are open: it writes those of
// touched ledgers, compacts a journal that has become long, and writes one anew that
// was removed.
type upkeep struct {
	anchors *Anchors
	logger  *slog.Logger

	rewriting sync.WaitGroup
	busy      chan struct{} // holds a token while a rewrite is under way
	rest      time.Time     // until then no rewrite is tried; guarded by busy
	missed    bool          // they were not in their place at the last look; guarded by busy
}

// run flushes and looks after the journal until ctx ends.
func (a *Anchors) run(ctx context.Context, logger *slog.Logger) {
	u := &upkeep{anchors: a, logger: logger, busy: make(chan struct{}, 1)}
	defer u.rewriting.Wait()
	tick := time.NewTicker(anchorEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.tick(ctx)
		}
	}
}

func (u *upkeep) tick(ctx context.Context) {
	if err := u.anchors.flush(); err != nil {
		u.logger.Error("anchors not written", "err", err)
	}
	if u.anchors.readOnly {
		return
	}
	select {
	case u.busy <- struct{}{}:
		u.rewriting.Go(func() { u.look(ctx); <-u.busy })
	default:
	}
}

// look does what the journal needs now.
func (u *upkeep) look(ctx context.Context) {
	there, err := u.anchors.inPlace()
	switch {
	case err != nil:
		u.failed("anchors can't be looked at", err)
	case !there:
		u.restore(ctx)
	case u.anchors.isLong() && time.Now().After(u.rest):
		if err := u.anchors.compact(ctx); err != nil && ctx.Err() == nil {
			u.failed("anchors not compacted", err)
		}
	}
}

// failed tells of something that is tried again after a rest.
func (u *upkeep) failed(what string, err error) {
	if now := time.Now(); now.After(u.rest) {
		u.logger.Error(what, "err", err)
		u.rest = now.Add(upkeepRest)
	}
}

// restore brings back what was removed or replaced. That it was is told at once.
func (u *upkeep) restore(ctx context.Context) {
	if !u.missed {
		u.missed, u.rest = true, time.Time{}
		u.anchors.lost.Add(1)
		u.logger.Error("anchors lost: the folder or its journal was removed or replaced", "folder", u.anchors.dir)
	}
	if err := u.anchors.restore(ctx); err != nil {
		u.failed("anchors not written anew", err)
		return
	}
	u.missed = false
	u.logger.Warn("anchors written anew, from what this process has open", "folder", u.anchors.dir)
}

// inPlace reports whether journals and lock are still those in the folder, or nobody
// uses them any more.
func (a *Anchors) inPlace() (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return true, nil
	}
	for _, j := range []*journal{a.journal, a.names} {
		if there, err := j.inPlace(); !there || err != nil {
			return false, err
		}
	}
	return a.locked()
}

// locked reports whether the lock that is held is the one in the folder.
func (a *Anchors) locked() (bool, error) {
	held, err := a.lock.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(a.path("lock"))
	if missing(err) {
		return false, nil
	}
	return err == nil && os.SameFile(held, there), err
}

// isLong reports whether the journal is worth being compacted.
func (a *Anchors) isLong() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.journal.notes > len(a.known)+len(a.known)/2+spareNotes
}

// compact leaves one note of each origin in the journal, its newest. Appends go on
// meanwhile. Only one compaction goes on at a time.
func (a *Anchors) compact(ctx context.Context) error {
	a.mu.Lock()
	a.round++
	round := a.round
	a.mu.Unlock()
	if err := a.journal.rewrite(ctx, &a.mu, func(note []byte) bool { return a.keeps(note, round) }); err != nil {
		return fmt.Errorf("compact anchors: %w", err)
	}
	return nil
}

// keeps reports whether a note is the newest one of its origin, the first time that
// it is asked in a round.
func (a *Anchors) keeps(note []byte, round uint32) bool {
	k, err := readKeyed(note)
	if err != nil {
		return true // which no note is that was appended
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	newest := a.known[k.key]
	if newest.size != k.size || newest.root != k.root || newest.copied == round {
		return false
	}
	newest.copied = round
	a.known[k.key] = newest
	return true
}

// restore takes the folder again, or makes it, and writes the journals to it anew: the
// open files have all notes, also after they were removed. A foreign journal is kept
// under another name.
func (a *Anchors) restore(ctx context.Context) error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	if err := a.relock(); err != nil {
		return err
	}
	all := func([]byte) bool { return true }
	if err := a.names.rewrite(ctx, &a.mu, all); err != nil {
		return fmt.Errorf("write names anew: %w", err)
	}
	return a.compact(ctx)
}

// relock takes the lock in the folder, if that is another file by now.
func (a *Anchors) relock() error {
	if held, err := a.locked(); held || err != nil {
		return err
	}
	lock, err := lockfile.Hold(a.path("lock"))
	if errors.Is(err, lockfile.ErrHeld) {
		return errors.New("another process uses the folder by now")
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.lock
	a.lock = lock
	return old.Close()
}
