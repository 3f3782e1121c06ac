package anchor

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strconv"
	"syscall"
)

const (
	maxNoteBytes   = 64 << 10
	checksumDigits = 16
	maxFrameLine   = len("anchor 65536 ") + checksumDigits + 1
)

// frameReader reads the notes of a journal in order, through one buffer.
type frameReader struct{ r *bufio.Reader }

func newFrameReader(r io.Reader) frameReader {
	return frameReader{bufio.NewReaderSize(r, 4*maxNoteBytes)}
}

// readNextNote returns the next note, which is valid until the next call, and its size in the file. It returns
// io.ErrUnexpectedEOF if the note is shorter than its length.
func (n frameReader) readNextNote() (note []byte, taken int, err error) {
	line, err := n.r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errDamagedNote
		}
		return nil, 0, err
	}
	length, sum, ok := parseFrameLine(line)
	if !ok {
		return nil, 0, errDamagedNote
	}
	taken = len(line) + length
	if note, err = n.r.Peek(length); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, err
	}
	if checksumNote(note) != sum {
		return nil, 0, errDamagedNote
	}
	_, err = n.r.Discard(length)
	return note, taken, err
}

// errDamagedNote is returned for bytes that are not a note, or that do not match the note's first line.
var errDamagedNote = errors.New("damaged note")

// parseFrameLine parses the line before a note.
func parseFrameLine(line []byte) (length int, sum [checksumDigits]byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("anchor "))
	if !ok || len(line) > maxFrameLine {
		return 0, sum, false
	}
	digits, rest, _ := bytes.Cut(rest, []byte(" "))
	if len(rest) != checksumDigits+1 || len(digits) == 0 {
		return 0, sum, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, sum, false
		}
		length = length*10 + int(d-'0')
	}
	return length, [checksumDigits]byte(rest), length <= maxNoteBytes
}

func checksumNote(note []byte) (digits [checksumDigits]byte) {
	h := sha256.Sum256(note)
	hex.Encode(digits[:], h[:checksumDigits/2])
	return digits
}

func appendFrame(b []byte, note []byte) []byte {
	sum := checksumNote(note)
	b = strconv.AppendInt(append(b, "anchor "...), int64(len(note)), 10)
	b = append(append(append(b, ' '), sum[:]...), '\n')
	return append(b, note...)
}

// isMissing reports whether an error means that a path does not exist.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
