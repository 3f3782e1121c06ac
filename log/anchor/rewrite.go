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

// rewritePattern is the pattern of the files of unfinished rewrites.
const rewritePattern = ".anchors-*"

// rewriting selects what a rewrite copies.
type rewriting struct {
	keep   func(note []byte) bool // reports whether a note is copied; nil: all are
	retain func(d damage) bool    // reports whether damaged bytes are copied, unchanged; nil: all are
}

// rewriteNotes replaces the file of the journal with a new one that contains what r selects. mu guards the journal. It
// is held only to copy the notes that were appended in the meantime and to exchange the files, so that appends continue
// while notes are copied.
//
// A crash at any moment leaves the old or the new file at the path, and both contain all notes appended by then. Notes
// are read from the open file, so a rewrite restores a journal that was removed.
func (j *journal) rewriteNotes(ctx context.Context, mu sync.Locker, r rewriting) error {
	next, err := createCopy(j.path)
	if err != nil {
		return err
	}
	err = next.fillFrom(ctx, j, mu, r)
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
	file    *durable.Temporary
	to      *bufio.Writer
	from    int64 // offset in the old file up to which it was copied
	size    int64
	notes   int
	damages []damage
}

func createCopy(path string) (*journalCopy, error) {
	f, err := durable.NewTemporary(path, rewritePattern)
	if err != nil {
		return nil, err
	}
	return &journalCopy{file: f, to: bufio.NewWriterSize(f, maxNoteBytes)}, nil
}

// fillFrom copies the notes of a journal, and then those appended in the meantime.
func (c *journalCopy) fillFrom(ctx context.Context, j *journal, mu sync.Locker, r rewriting) error {
	for range 2 {
		mu.Lock()
		file, size, damages := j.file, j.size, j.damages
		mu.Unlock()
		if err := c.copyNotes(ctx, file, size, damages, r); err != nil {
			return err
		}
		r = rewriting{}
	}
	return c.flushAndSync()
}

// copyNotes copies what r selects of file up to an offset. damages are its damaged regions.
func (c *journalCopy) copyNotes(ctx context.Context, file *os.File, upTo int64, damages []damage, r rewriting) error {
	for _, d := range damages {
		if d.at < c.from || d.at >= upTo {
			continue
		}
		if err := c.copyWhole(ctx, file, d.at, r.keep); err != nil {
			return err
		}
		if r.retain == nil || r.retain(d) {
			c.damages = append(c.damages, damage{at: c.size, bytes: d.bytes})
			if _, err := io.Copy(c.to, io.NewSectionReader(file, d.at, d.bytes)); err != nil {
				return err
			}
			c.size += d.bytes
		}
		c.from = d.end()
	}
	return c.copyWhole(ctx, file, upTo, r.keep)
}

// copyWhole copies whole notes up to an offset.
func (c *journalCopy) copyWhole(ctx context.Context, file *os.File, upTo int64, keep func([]byte) bool) error {
	end, err := scanWhole(file, c.from, upTo, func(note []byte, at int64, taken int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if keep != nil && !keep(note) {
			return nil
		}
		if _, err := c.to.Write(appendFrame(c.to.AvailableBuffer(), note)); err != nil {
			return err
		}
		c.size += int64(taken)
		c.notes++
		return nil
	})
	if err == nil && end != upTo {
		err = fmt.Errorf("%s was damaged at byte %d while it was open", file.Name(), end)
	}
	c.from = upTo
	return err
}

func (c *journalCopy) flushAndSync() error {
	if err := c.to.Flush(); err != nil {
		return err
	}
	return c.file.Sync()
}

// replaceJournal copies the rest and exchanges the files, without an append in between.
func (c *journalCopy) replaceJournal(j *journal, mu sync.Locker) error {
	mu.Lock()
	defer mu.Unlock()
	if j.size > c.from {
		if err := errors.Join(c.copyNotes(context.Background(), j.file, j.size, nil, rewriting{}), c.flushAndSync()); err != nil {
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
	_ = j.file.Close() // the new file has its notes
	*j = journal{path: j.path, file: c.file.File, info: info, size: c.size, notes: c.notes, damages: c.damages, missing: j.missing, renamed: true}
	_ = j.finishFailed() // if it fails, the next append tries again
	return nil
}

// keepForeign renames a foreign file at the journal's path.
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
