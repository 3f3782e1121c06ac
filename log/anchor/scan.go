package anchor

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// damage is a region of a journal that does not consist of whole notes. It stays in place until no ledger can have lost
// its latest note in it, because the position matters: notes after the region are newer than the lost ones, and notes
// before it may be older.
type damage struct{ at, bytes int64 }

func (d damage) end() int64 { return d.at + d.bytes }

// scan contains the functions that receive what scanNotes finds, in file order.
type scan struct {
	// note is called with each whole note, the offset of its frame and the frame's length. The note is valid until it
	// returns.
	note func(note []byte, at int64, taken int) error

	// damaged is called with each damaged region. If nil, damaged regions are skipped.
	damaged func(d damage) error
}

// scanNotes reads the notes of a file between two offsets. It continues after damage with the next whole note. It
// returns the end of the last whole note or damaged region: what follows it is a note that a crash cut off.
func scanNotes(file io.ReaderAt, from, upTo int64, s scan) (end int64, err error) {
	for from < upTo {
		if from, err = scanWhole(file, from, upTo, s.note); err != nil || from >= upTo {
			return from, err
		}
		next, found, err := findNote(file, from+1, upTo)
		if err != nil {
			return from, err
		}
		if !found {
			torn, err := isTorn(file, from, upTo)
			if err != nil || torn {
				return from, err
			}
		}
		if s.damaged != nil {
			if err := s.damaged(damage{at: from, bytes: next - from}); err != nil {
				return from, err
			}
		}
		from = next
	}
	return from, nil
}

// errSee is an error of the caller's function, as opposed to damage.
type errSee struct{ error }

// scanWhole reads whole notes up to the first damaged one, or to the end. It returns the offset after the last whole note.
func scanWhole(file io.ReaderAt, from, upTo int64, see func([]byte, int64, int) error) (int64, error) {
	r := newFrameReader(io.NewSectionReader(file, from, upTo-from))
	for {
		note, taken, err := r.readNextNote()
		if err == nil {
			if err = see(note, from, taken); err != nil {
				err = errSee{err}
			}
		}
		switch {
		case err == nil:
			from += int64(taken)
		case errors.As(err, new(errSee)):
			return from, errors.Unwrap(err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errDamagedNote):
			return from, nil
		default:
			return from, err
		}
	}
}

func (e errSee) Unwrap() error { return e.error }

var framePrefix = []byte("anchor ")

// findNote returns the offset of the first whole note at or after an offset, or upTo if there is none.
func findNote(file io.ReaderAt, from, upTo int64) (at int64, found bool, err error) {
	window := make([]byte, 4*maxNoteBytes)
	for from < upTo {
		n, err := file.ReadAt(window[:min(int64(len(window)), upTo-from)], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return from, false, err
		}
		part := window[:n]
		for i := 0; ; {
			next := bytes.Index(part[i:], framePrefix)
			if next < 0 {
				break
			}
			i += next
			whole, err := isWhole(file, from+int64(i), upTo)
			if err != nil || whole {
				return from + int64(i), whole, err
			}
			i++
		}
		if n < len(framePrefix) || from+int64(n) >= upTo {
			break
		}
		from += int64(n - len(framePrefix) + 1)
	}
	return upTo, false, nil
}

// isWhole reports whether a whole note begins at an offset.
func isWhole(file io.ReaderAt, at, upTo int64) (bool, error) {
	line, rest, err := readFrameLine(file, at, upTo)
	if err != nil {
		return false, err
	}
	length, sum, ok := parseFrameLine(line)
	if !ok || rest+int64(length) > upTo {
		return false, nil
	}
	note := make([]byte, length)
	if _, err := file.ReadAt(note, rest); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return checksumNote(note) == sum, nil
}

// readFrameLine returns the line at an offset, of at most maxFrameLine bytes, and the offset after it.
func readFrameLine(file io.ReaderAt, at, upTo int64) (line []byte, rest int64, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(file, at, min(int64(maxFrameLine), upTo-at)), 64)
	line, err = r.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, at + int64(len(line)), err
}

// isTorn reports whether the rest of a file, which contains no whole note, is a note that a crash cut off: without
// trailing zeros it is empty, ends within the first line, or is shorter than the first line says. A complete note whose
// length alone is wrong is not torn.
func isTorn(file io.ReaderAt, at, upTo int64) (bool, error) {
	if upTo-at > int64(maxFrameLine+maxNoteBytes) {
		return false, nil
	}
	tail := make([]byte, upTo-at)
	if _, err := file.ReadAt(tail, at); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	tail = bytes.TrimRight(tail, "\x00")
	line, note, ended := bytes.Cut(tail, []byte("\n"))
	if !ended {
		return len(line) <= maxFrameLine && (bytes.HasPrefix(line, framePrefix) || bytes.HasPrefix(framePrefix, line)), nil
	}
	length, sum, ok := parseFrameLine(tail[:len(line)+1])
	return ok && len(note) < length && checksumNote(note) != sum, nil
}
