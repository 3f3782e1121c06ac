package anchor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/internal/durable"
)

const headJournal = "anchors.journal"

// Open opens the anchors in dir, and creates the folder if necessary. It removes a note at the end of a journal that a
// crash cut off. Other damage is not an error: Problems describes it, and Doubtful reports which origins it affects.
// Open does not compact, so that a service can start while the volume is full.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	// Leave the permissions of a folder of another owner as they are.
	if err := durable.TightenDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	lock, err := durable.AcquireLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, wrapOpenError(dir, err)
	}
	f := newFolder(dir, lock)
	if err := f.loadJournals(openJournal); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	return f, removeRewrites(dir)
}

// OpenReadOnly opens the anchors in dir for comparing. It writes nothing, and a folder that does not exist has no
// anchors. Ledgers opened with such a folder accept no events. OpenReadOnly fails while another process uses the
// anchors, if the lock file can be opened.
func OpenReadOnly(dir string) (*Folder, error) {
	lock, err := durable.AcquireExistingLock(filepath.Join(dir, "lock"))
	if errors.Is(err, durable.ErrLocked) {
		return nil, wrapOpenError(dir, err)
	}
	return openReadOnly(dir, lock)
}

// OpenBeside is like OpenReadOnly, but another process may use the anchors. The result contains the anchors written
// before the call, and possibly some written during it.
func OpenBeside(dir string) (*Folder, error) { return openReadOnly(dir, nil) }

func openReadOnly(dir string, lock *os.File) (*Folder, error) {
	f := newFolder(dir, lock)
	f.readOnly = true
	if err := f.loadJournals(openJournalReadOnly); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	return f, nil
}

func newFolder(dir string, lock *os.File) *Folder {
	return &Folder{dir: dir, lock: lock, dirty: make(map[Source]struct{})}
}

type journalOpener func(path string, see func(note []byte) error) (*journal, error)

// loadJournals opens both journals concurrently. If it fails, it leaves no file open.
func (f *Folder) loadJournals(open journalOpener) error {
	slugs := make(chan error)
	go func() { slugs <- f.loadSlugs(open) }()
	err := f.loadHeads(open)
	if err = errors.Join(err, <-slugs); err == nil {
		err = f.findDoubts()
	}
	if err != nil {
		return errors.Join(err, f.closeFiles())
	}
	return nil
}

// closeFiles closes all files without writing.
func (f *Folder) closeFiles() (err error) {
	f.closed = true
	for _, j := range []*journal{f.journal, f.slugs} {
		if j != nil {
			err = errors.Join(err, j.closeFile())
		}
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

func (f *Folder) journalPath(name string) string { return filepath.Join(f.dir, name) }

// loadHeads opens the journal of checkpoints. One goroutine reads and hashes the notes, another stores them in memory:
// with a million origins each takes about half of the time.
func (f *Folder) loadHeads(open journalOpener) (err error) {
	path := f.journalPath(headJournal)
	f.heads = make(map[originHash]head, guessOrigins(path))
	batches := make(chan []originHead, 4)
	remembered := make(chan struct{})
	go func() {
		defer close(remembered)
		for batch := range batches {
			for _, h := range batch {
				f.rememberHead(h.origin, h.head)
			}
		}
	}()
	batch := make([]originHead, 0, loadBatch)
	f.journal, err = open(path, func(note []byte) error {
		h, err := parseOriginHead(note)
		if err != nil {
			return err
		}
		if batch = append(batch, h); len(batch) == loadBatch {
			batches <- batch
			batch = make([]originHead, 0, loadBatch)
		}
		return nil
	})
	batches <- batch
	close(batches)
	<-remembered
	return err
}

const (
	loadBatch        = 1 << 10 // notes
	usualNoteBytes   = 280     // including the line before the note
	maxGuessedOrigin = 1 << 20 // bounds the memory reserved before reading
)

// guessOrigins estimates the number of origins in a journal that is not longer than isLong allows. A wrong estimate
// only costs memory or time.
func guessOrigins(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return min(max(int(info.Size()/usualNoteBytes)-spareNotes, 0)*2/3, maxGuessedOrigin)
}

func wrapOpenError(dir string, err error) error {
	if errors.Is(err, durable.ErrLocked) {
		err = errors.New("another process uses them: stop the server")
	}
	return fmt.Errorf("open anchors in %s: %w", dir, err)
}

// removeRewrites removes the files of rewrites that a crash interrupted.
func removeRewrites(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, rewritePattern))
	if err != nil {
		return fmt.Errorf("open anchors: %w", err)
	}
	for _, path := range left {
		_ = os.Remove(path) // if this fails, it only wastes space
	}
	return nil
}

// Close writes the anchors of touched sources and closes the folder. Run must have ended.
func (f *Folder) Close() error {
	err := errors.Join(f.restoreLost(), f.Flush())
	f.mu.Lock()
	defer f.mu.Unlock()
	if closeErr := f.closeFiles(); err == nil {
		err = closeErr
	}
	return err
}

// Abandon closes the folder without writing, like a process that is killed. It is for simulations of crashes.
func (f *Folder) Abandon() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closeFiles()
}

// restoreLost restores the journals if they were removed since Run last checked.
func (f *Folder) restoreLost() error {
	if f.readOnly {
		return nil
	}
	if there, err := f.isInPlace(); there || err != nil {
		return err
	}
	return f.restoreJournals(context.Background())
}
