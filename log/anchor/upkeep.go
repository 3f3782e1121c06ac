package anchor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

const (
	// flushEvery bounds how far the anchors lag behind the touched sources.
	flushEvery = time.Second

	// spareNotes is the number of notes that a journal may have in addition to three for two origins: about 5 MB, which
	// 300 busy organizations write in a minute.
	spareNotes = 16 << 10

	// retryRest is the delay before a failed rewrite is retried.
	retryRest = time.Minute
)

// upkeep is the background work on an open folder: it flushes, compacts a long journal, and restores a journal that was
// removed.
type upkeep struct {
	folder *Folder
	logger *slog.Logger

	rewrites sync.WaitGroup
	busy     chan struct{} // contains a token during a rewrite

	// Guarded by busy.
	rest   time.Time // no rewrite before this time
	missed bool      // the journals were not in place at the last check
}

// Run flushes and maintains the journals until ctx ends.
func (f *Folder) Run(ctx context.Context, logger *slog.Logger) {
	u := &upkeep{folder: f, logger: logger, busy: make(chan struct{}, 1)}
	defer u.rewrites.Wait()
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.flushAndInspect(ctx)
		}
	}
}

func (u *upkeep) flushAndInspect(ctx context.Context) {
	if err := u.folder.Flush(); err != nil {
		u.logger.Error("anchors not written", "err", err)
	}
	if u.folder.readOnly {
		return
	}
	select {
	case u.busy <- struct{}{}:
		u.rewrites.Go(func() { u.inspectJournals(ctx); <-u.busy })
	default:
	}
}

// inspectJournals restores or compacts the journals if necessary.
func (u *upkeep) inspectJournals(ctx context.Context) {
	there, err := u.folder.isInPlace()
	switch {
	case err != nil:
		u.reportFailure("anchors can't be looked at", err)
	case !there:
		u.restoreLost(ctx)
	case time.Now().After(u.rest):
		_, err := u.folder.CompactIfLong(ctx)
		if err == nil {
			err = u.folder.dropSettledDamage(ctx)
		}
		if err != nil && ctx.Err() == nil {
			u.reportFailure("anchors not compacted", err)
		}
	}
}

// reportFailure logs a failure and delays the next try.
func (u *upkeep) reportFailure(message string, err error) {
	if now := time.Now(); now.After(u.rest) {
		u.logger.Error(message, "err", err)
		u.rest = now.Add(retryRest)
	}
}

// restoreLost restores journals that were removed or replaced, and logs the loss immediately.
func (u *upkeep) restoreLost(ctx context.Context) {
	if !u.missed {
		u.missed, u.rest = true, time.Time{}
		u.folder.lost.Add(1)
		u.logger.Error("anchors lost: the folder or its journal was removed or replaced", "folder", u.folder.dir)
	}
	if err := u.folder.restoreJournals(ctx); err != nil {
		u.reportFailure("anchors not written anew", err)
		return
	}
	u.missed = false
	u.logger.Warn("anchors rewritten from the memory of this process", "folder", u.folder.dir)
}

// isInPlace reports whether the open journals and lock are still those in the folder. A closed folder counts as in
// place.
func (f *Folder) isInPlace() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return true, nil
	}
	for _, j := range []*journal{f.journal, f.slugs} {
		if there, err := j.isInPlace(); !there || err != nil {
			return false, err
		}
	}
	return f.holdsLock()
}

// holdsLock reports whether the lock that is held is the one in the folder.
func (f *Folder) holdsLock() (bool, error) {
	held, err := f.lock.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(f.journalPath("lock"))
	if isMissing(err) {
		return false, nil
	}
	return err == nil && os.SameFile(held, there), err
}

// CompactIfLong compacts the journal of checkpoints if it is long, and reports whether it did.
func (f *Folder) CompactIfLong(ctx context.Context) (done bool, err error) {
	f.mu.Lock()
	long := f.journal.notes > maxNotes(len(f.heads))
	f.mu.Unlock()
	if !long {
		return false, nil
	}
	return true, f.Compact(ctx, nil)
}

// maxNotes returns how many notes a journal of the given number of origins may have.
func maxNotes(origins int) int { return origins + origins/2 + spareNotes }

// Compact keeps only the latest note of each origin in the journal. Appends continue in the meantime. Only one
// compaction may run at a time. seen, if not nil, is called before each note is copied, without a lock held.
func (f *Folder) Compact(ctx context.Context, seen func()) error {
	round := f.nextRound()
	err := f.journal.rewriteNotes(ctx, &f.mu, rewriting{
		keep: func(note []byte) bool {
			if seen != nil {
				seen()
			}
			return f.isNewestNote(note, round)
		},
		retain: func(d damage) bool {
			round = f.nextRound() // notes before and after the damage are compacted separately
			return f.mayHideNotes(d)
		},
	})
	if err != nil {
		return fmt.Errorf("compact anchors: %w", err)
	}
	return nil
}

// nextRound returns the number of the next compaction, or of its next part.
func (f *Folder) nextRound() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.round++
	return f.round
}

// isNewestNote reports whether a note is the latest of its origin. It reports true once per compaction.
func (f *Folder) isNewestNote(note []byte, round uint32) bool {
	h, err := parseOriginHead(note)
	if err != nil {
		return true // appended notes are never malformed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	newest := f.heads[h.origin]
	if newest.size != h.size || newest.root != h.root || newest.copied == round {
		return false
	}
	newest.copied = round
	f.heads[h.origin] = newest
	return true
}

// restoreJournals locks or creates the folder again and rewrites the journals from the open files, which have all notes
// even if they were removed. A foreign journal in their place is renamed.
func (f *Folder) restoreJournals(ctx context.Context) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if err := f.takeLock(); err != nil {
		return err
	}
	if err := f.slugs.rewriteNotes(ctx, &f.mu, rewriting{}); err != nil {
		return fmt.Errorf("rewrite names: %w", err)
	}
	return f.Compact(ctx, nil)
}

// takeLock locks the lock file in the folder if it has been replaced.
func (f *Folder) takeLock() error {
	if held, err := f.holdsLock(); held || err != nil {
		return err
	}
	lock, err := durable.AcquireLock(f.journalPath("lock"))
	if errors.Is(err, durable.ErrLocked) {
		return errors.New("another process now uses the folder")
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.lock
	f.lock = lock
	return old.Close()
}
