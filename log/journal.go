package log

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// journal is a file of notes. Each stands behind a line
//
//	anchor <length in bytes> <first 16 hex digits of SHA-256 of the note>
//
// and begins on a line of its own, so that a person can read it.
type journal struct {
	path  string
	file  *os.File
	size  int64 // of what is known to be whole
	notes int
}

// errJournal: the journal is damaged before its end.
var errJournal = errors.New("anchor journal is damaged")

const maxAnchorNote = 64 << 10

// openJournal opens or makes the file and calls each with its notes in order.
func openJournal(path string, each func(note []byte) error) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, file: f}
	if err := j.replay(each); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Truncate(j.size), f.Sync(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// replay reads whole notes up to the end, or to the note that a crash cut off.
func (j *journal) replay(each func([]byte) error) error {
	r := bufio.NewReader(j.file)
	for {
		note, n, err := readNote(r)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err == nil {
			err = each(note)
		}
		if err != nil {
			return fmt.Errorf("%w at byte %d: %w", errJournal, j.size, err)
		}
		j.size += int64(n)
		j.notes++
	}
}

// readNote reads one note and returns the bytes it took. A note that ends
// before its length is io.ErrUnexpectedEOF.
func readNote(r *bufio.Reader) (note []byte, n int, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, 0, err
	}
	var length int
	var sum string
	if _, err := fmt.Sscanf(line, "anchor %d %16s\n", &length, &sum); err != nil || length < 0 || length > maxAnchorNote {
		return nil, 0, errors.New("not an anchor line")
	}
	note = make([]byte, length)
	if _, err := io.ReadFull(r, note); err != nil {
		return nil, 0, io.ErrUnexpectedEOF
	}
	if noteSum(note) != sum {
		return nil, 0, errors.New("checksum does not match")
	}
	return note, len(line) + length, nil
}

func noteSum(note []byte) string {
	h := sha256.Sum256(note)
	return hex.EncodeToString(h[:8])
}

func appendNote(b []byte, note []byte) []byte {
	b = fmt.Appendf(b, "anchor %d %s\n", len(note), noteSum(note))
	return append(b, note...)
}

// each calls see with every note, in their order.
func (j *journal) each(see func(note []byte) error) error {
	r := bufio.NewReader(io.NewSectionReader(j.file, 0, j.size))
	for {
		note, _, err := readNote(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = see(note)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errJournal, err)
		}
	}
}

// append writes notes with one sync. When it fails the file is cut back to what
// was whole, so that a later append finds it in order.
func (j *journal) append(notes [][]byte) error {
	var b []byte
	for _, n := range notes {
		b = appendNote(b, n)
	}
	_, err := j.file.WriteAt(b, j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(len(b))
	j.notes += len(notes)
	return nil
}

// compact rewrites the journal with the notes that keep says, one of each kind.
func (j *journal) compact(keep func(note []byte) bool) error {
	if _, err := j.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(j.path), ".anchors-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) // fails, rightly, once it has been renamed
	fresh := &journal{path: j.path, file: next}
	seen := make(map[[32]byte]bool)
	var b bytes.Buffer
	r := bufio.NewReader(io.LimitReader(j.file, j.size))
	for {
		note, _, err := readNote(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, next.Close())
		}
		if h := sha256.Sum256(note); keep(note) && !seen[h] {
			seen[h] = true
			b.Write(appendNote(nil, note))
			fresh.notes++
		}
	}
	fresh.size = int64(b.Len())
	if _, err := b.WriteTo(next); err != nil {
		return errors.Join(err, next.Close())
	}
	if err := errors.Join(next.Sync(), os.Rename(next.Name(), j.path), syncDir(filepath.Dir(j.path))); err != nil {
		return errors.Join(err, next.Close())
	}
	old := j.file
	*j = *fresh
	return old.Close()
}

func (j *journal) close() error { return j.file.Close() }

// syncDir makes a rename or a new file in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
