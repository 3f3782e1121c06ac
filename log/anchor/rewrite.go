package anchor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/agentledger/agentledger/internal/durable"
)

// rewriting is the pattern of the files of unfinished rewrites.
const rewriting = ".anchors-*"

// rewriteNotes replaces the file of the journal by a new one with the notes that keep
// accepts. mu guards the journal. It is held only to copy the notes that were appended
// meanwhile and to exchange the files, so that appends go on while notes are copied.
//
// A crash at any moment leaves the old file or the new one at the path, and both have all
// notes that were appended by then. Notes are read from the open file, so that a rewrite
// restores a journal that was removed.
func (j *journal) rewriteNotes(ctx context.Context, mu sync.Locker, keep func(note []byte) bool) error {
	next, err := createCopy(j.path)
	if err != nil {
		return err
	}
	err = next.fillFrom(ctx, j, mu, keep)
	if err == nil {
		err = next.replaceJournal(j, mu)
	}
	if err != nil {
		return errors.Join(err, next.file.Discard())
	}
	return nil
}

// journalCopy is a new file for a journal.
type journalCopy struct {
	file  *durable.Temporary
	to    *bufio.Writer
	from  int64 // of the old file: up to where it was copied
	size  int64
	notes int
}

func createCopy(path string) (*journalCopy, error) {
	f, err := durable.NewTemporary(path, rewriting)
	if err != nil {
		return nil, err
	}
	return &journalCopy{file: f, to: bufio.NewWriterSize(f, maxNoteBytes)}, nil
}

// fillFrom copies the notes of a journal, then those that were appended meanwhile.
func (c *journalCopy) fillFrom(ctx context.Context, j *journal, mu sync.Locker, keep func([]byte) bool) error {
	for range 2 {
		mu.Lock()
		file, size := j.file, j.size
		mu.Unlock()
		if err := c.copyNotes(ctx, file, size, keep); err != nil {
			return err
		}
		keep = nil
	}
	return c.flushAndSync()
}

// copyNotes copies the kept notes of file up to a byte; nil keeps all.
func (c *journalCopy) copyNotes(ctx context.Context, file *os.File, upTo int64, keep func([]byte) bool) error {
	r := newFrameReader(io.NewSectionReader(file, c.from, upTo-c.from))
	for c.from < upTo {
		if err := ctx.Err(); err != nil {
			return err
		}
		note, n, err := r.readNextNote()
		if err != nil {
			return fmt.Errorf("%w at byte %d: %w", errJournal, c.from, err)
		}
		c.from += int64(n)
		if keep != nil && !keep(note) {
			continue
		}
		if _, err := c.to.Write(appendFrame(c.to.AvailableBuffer(), note)); err != nil {
			return err
		}
		c.size += int64(n)
		c.notes++
	}
	return nil
}

func (c *journalCopy) flushAndSync() error {
	if err := c.to.Flush(); err != nil {
		return err
	}
	return c.file.Sync()
}

// replaceJournal copies the rest and exchanges the files. No append is between the two.
func (c *journalCopy) replaceJournal(j *journal, mu sync.Locker) error {
	mu.Lock()
	defer mu.Unlock()
	if j.size > c.from {
		if err := errors.Join(c.copyNotes(context.Background(), j.file, j.size, nil), c.flushAndSync()); err != nil {
			return err
		}
	}
	info, err := c.file.Stat()
	if err == nil {
		err = j.keepForeign()
	}
	if err == nil {
		err = c.file.MoveToPath()
	}
	if err != nil {
		return err
	}
	_ = j.file.Close() // its notes are in the new one
	*j = journal{path: j.path, file: c.file.File, info: info, size: c.size, notes: c.notes, renamed: true}
	_ = j.finishFailed() // or the next append tries again, and fails as long as this does
	return nil
}

// keepForeign keeps a foreign file at the journal's path under another name.
func (j *journal) keepForeign() error {
	if here, err := j.isInPlace(); err != nil || here {
		return err
	}
	aside := j.path + ".replaced"
	if err := os.Remove(aside); err != nil && !isMissing(err) {
		return err
	}
	if err := os.Link(j.path, aside); err != nil && !isMissing(err) {
		return err
	}
	return nil
}
