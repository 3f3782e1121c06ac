package anchor

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
)

// Notes yields the notes of all slugs and then the latest checkpoint of each origin, for the folder of a process that
// joins. It reads the journals while others write, and may miss notes that are written concurrently: call Follow first.
// It may yield a note twice. If reading fails, the last pair contains the error.
func (f *Folder) Notes() iter.Seq2[Note, error] {
	return func(yield func(Note, error) bool) {
		for _, slugs := range []bool{true, false} {
			more, err := f.yieldNotes(slugs, func(n Note) bool { return yield(n, nil) })
			if err != nil {
				yield(Note{}, fmt.Errorf("read anchors: %w", err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// yieldNotes yields the notes of one journal that are in force. more is false after yield has returned false.
func (f *Folder) yieldNotes(slugs bool, yield func(Note) bool) (more bool, err error) {
	file, size, err := f.reopenJournal(slugs)
	if err != nil || file == nil {
		return true, err
	}
	defer file.Close()
	more = true
	_, err = scanNotes(file, 0, size, scan{note: func(note []byte, _ int64, _ int) error {
		if more && f.isInForce(note, slugs) {
			more = yield(Note{Slug: slugs, Text: bytes.Clone(note)})
		}
		if !more {
			return errStopped
		}
		return nil
	}})
	if errors.Is(err, errStopped) {
		err = nil
	}
	return more, err
}

// errStopped ends a scan if the caller needs no more notes.
var errStopped = errors.New("stopped")

// reopenJournal opens a journal a second time, so that a compaction does not close it, and returns the size of its
// whole notes. The file is nil if there is no journal.
func (f *Folder) reopenJournal(slugs bool) (*os.File, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.journal
	if slugs {
		j = f.slugs
	}
	if j.file == nil {
		return nil, 0, nil
	}
	file, err := os.Open(j.path)
	if err != nil {
		return nil, 0, err
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(info, j.info) {
		return nil, 0, errors.Join(err, errLost, file.Close())
	}
	return file, j.size, nil
}

// isInForce reports whether a note is the one that its folder uses.
func (f *Folder) isInForce(note []byte, isSlug bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if isSlug {
		slug, origin, err := parseSlugNote(note)
		return err == nil && f.slugOwners[hashSlug(slug)] == hashOriginText(origin)
	}
	h, err := parseOriginHead(note)
	known := f.heads[h.origin]
	return err == nil && known.size == h.size && known.root == h.root
}
