package log

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

// errJournal: the journal is damaged before its end.
var errJournal = errors.New("anchor journal is damaged")

const (
	maxAnchorNote = 64 << 10
	noteSumDigits = 16
	maxNoteLine   = len("anchor 65536 ") + noteSumDigits + 1
)

// noteReader reads the notes of a journal one behind the other, out of one buffer.
type noteReader struct{ r *bufio.Reader }

func newNoteReader(r io.Reader) noteReader {
	return noteReader{bufio.NewReaderSize(r, 4*maxAnchorNote)}
}

// next reads one note, which is good until the next call, and returns the bytes it
// took. A note that ends before its length is io.ErrUnexpectedEOF.
func (n noteReader) next() (note []byte, taken int, err error) {
	line, err := n.r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errNoLine
		}
		return nil, 0, err
	}
	length, sum, ok := parseNoteLine(line)
	if !ok {
		return nil, 0, errNoLine
	}
	taken = len(line) + length
	if note, err = n.r.Peek(length); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, err
	}
	if noteSum(note) != sum {
		return nil, 0, errors.New("checksum does not match")
	}
	_, err = n.r.Discard(length)
	return note, taken, err
}

var errNoLine = errors.New("not an anchor line")

// parseNoteLine reads the line in front of a note.
func parseNoteLine(line []byte) (length int, sum [noteSumDigits]byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte("anchor "))
	if !ok || len(line) > maxNoteLine {
		return 0, sum, false
	}
	digits, rest, _ := bytes.Cut(rest, []byte(" "))
	if len(rest) != noteSumDigits+1 || len(digits) == 0 {
		return 0, sum, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, sum, false
		}
		length = length*10 + int(d-'0')
	}
	return length, [noteSumDigits]byte(rest), length <= maxAnchorNote
}

func noteSum(note []byte) (digits [noteSumDigits]byte) {
	h := sha256.Sum256(note)
	hex.Encode(digits[:], h[:noteSumDigits/2])
	return digits
}

func appendNote(b []byte, note []byte) []byte {
	sum := noteSum(note)
	b = strconv.AppendInt(append(b, "anchor "...), int64(len(note)), 10)
	b = append(append(append(b, ' '), sum[:]...), '\n')
	return append(b, note...)
}

// missing reports whether an error says that there is nothing at a path.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
