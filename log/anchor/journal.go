package anchor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/internal/durable"
)

// journal is a file of notes. Each note follows a line
//
//	anchor <length in bytes> <first 16 hex digits of SHA-256 of the note>
//
// which starts on a new line, so that the file is readable for an operator.
//
// A journal has one writer. Its owner guards it with a mutex; only rewriteNotes locks that mutex itself.
type journal struct {
	path  string
	file  *os.File    // nil if read-only and there is no file
	info  os.FileInfo // of file
	size  int64       // of the notes known to be whole
	notes int

	damages []damage // in the order of the file
	missing bool     // the file did not exist at this start or an earlier one

	torn    bool // bytes of a failed append may follow after size
	renamed bool // the rename that brought file to path may not be durable
}

// openJournal opens or creates the file and calls see with its notes in order. A note is valid until see returns. A
// note that a crash cut off is removed; damaged bytes remain.
func openJournal(path string, see func(note []byte) error) (*journal, error) {
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, file: f, missing: isMissing(missing)}
	err = j.loadNotes(see)
	if err == nil {
		err = errors.Join(f.Truncate(j.size), f.Sync(), durable.SyncDir(filepath.Dir(path)))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// openJournalReadOnly is like openJournal but does not write: it neither creates nor truncates the file. A missing file
// has no notes.
func openJournalReadOnly(path string, see func(note []byte) error) (*journal, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return &journal{path: path, missing: true}, nil
	}
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, file: f}
	if err := j.loadNotes(see); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// loadNotes reads the notes up to the end, or up to a note that a crash cut off. A whole note that see rejects counts
// as damaged.
func (j *journal) loadNotes(see func(note []byte) error) (err error) {
	if j.info, err = j.file.Stat(); err != nil {
		return err
	}
	j.size, err = scanNotes(j.file, 0, j.info.Size(), scan{
		note: func(note []byte, at int64, taken int) error {
			if see(note) != nil {
				j.damages = append(j.damages, damage{at: at, bytes: int64(taken)})
			} else {
				j.notes++
			}
			return nil
		},
		damaged: func(d damage) error { j.damages = append(j.damages, d); return nil },
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", j.path, err)
	}
	j.missing = j.missing || j.wasMissing()
	return nil
}

// readAllNotes calls see with every whole note in order. A note is valid until see returns.
func (j *journal) readAllNotes(see func(note []byte) error) error {
	if j.file == nil {
		return nil
	}
	_, err := scanNotes(j.file, 0, j.size, scan{note: func(note []byte, _ int64, _ int) error { return see(note) }})
	if err != nil {
		return fmt.Errorf("read %s: %w", j.path, err)
	}
	return nil
}

// appendNotes writes notes with one sync. If that fails, it truncates the file to the whole notes, so that a later
// append continues there.
func (j *journal) appendNotes(notes [][]byte) error {
	if err := j.finishFailed(); err != nil {
		return err
	}
	var b []byte
	for _, n := range notes {
		b = appendFrame(b, n)
	}
	_, err := j.file.WriteAt(b, j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.torn = true
		return errors.Join(err, j.finishFailed())
	}
	j.size += int64(len(b))
	j.notes += len(notes)
	return nil
}

// finishFailed completes a failed append or rewrite. Nothing is written before it succeeds.
func (j *journal) finishFailed() error {
	if j.torn {
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
		j.torn = false
	}
	if j.renamed {
		if err := durable.SyncDir(filepath.Dir(j.path)); err != nil {
			return err
		}
		j.renamed = false
	}
	return nil
}

// isInPlace reports whether the open file is still the file at its path. It is not if the file or its folder was
// removed or replaced. An error means that this is unknown at the moment.
func (j *journal) isInPlace() (bool, error) {
	there, err := os.Stat(j.path)
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(there, j.info), nil
}

func (j *journal) closeFile() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
