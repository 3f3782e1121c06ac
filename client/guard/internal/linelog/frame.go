package linelog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
)

// A line of a file is the CRC-32C of a text in eight hexadecimal digits, a space, the text and LF. The text is from the
// caller and begins with "{", or it is a mark "synced <bytes>": that many bytes of the file had been synced before the
// mark was written, so a crash cannot have lost them.
const (
	checksumDigits = 8
	frameBytes     = checksumDigits + 2 // around a text
	markPrefix     = "synced "
	markDigits     = 19
	markBytes      = frameBytes + len(markPrefix) + markDigits // of a line
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendChecksum(dst, text []byte) []byte {
	var sum [checksumDigits / 2]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(text, castagnoli))
	return hex.AppendEncode(dst, sum[:])
}

func appendFrame(dst, text []byte) []byte {
	dst = append(appendChecksum(dst, text), ' ')
	return append(append(dst, text...), '\n')
}

func appendMark(dst []byte, synced int64) []byte {
	return appendFrame(dst, fmt.Appendf(nil, "%s%0*d", markPrefix, markDigits, synced))
}

// parseFrame returns the text of a line. ok reports whether its checksum matches.
func parseFrame(line []byte) (text []byte, ok bool) {
	if len(line) < frameBytes || line[checksumDigits] != ' ' || line[len(line)-1] != '\n' {
		return nil, false
	}
	text = line[checksumDigits+1 : len(line)-1]
	return text, bytes.Equal(appendChecksum(nil, text), line[:checksumDigits])
}

// parseMark returns the number of bytes in a mark, or 0 for any other text.
func parseMark(text []byte) int64 {
	digits, ok := bytes.CutPrefix(text, []byte(markPrefix))
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// errCutOff is returned for a file that ends in lines that were not synced when the machine or the process stopped.
var errCutOff = errors.New("lines at the end are cut off")

// readLines calls see with the text of each line of a file and the offset of the text. It returns the total length of the
// whole lines.
func readLines(f io.ReaderAt, see func(text []byte, offset int64) error) (whole int64, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, math.MaxInt64), 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return whole, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return whole, err
		}
		text, ok := parseFrame(line)
		if !ok {
			return whole, checkCut(r, line, whole)
		}
		if bytes.HasPrefix(text, []byte("{")) {
			if err := see(text, whole+checksumDigits+1); err != nil {
				return whole, err
			}
		}
		whole += int64(len(line))
	}
}

// checkCut returns errCutOff if a crash can have left the line, and an error that wraps errDamaged otherwise. A crash
// leaves the beginning of a write, or pages of zeros, and none of these bytes had been synced.
func checkCut(r *bufio.Reader, line []byte, offset int64) error {
	if line[len(line)-1] == '\n' && bytes.IndexByte(line, 0) < 0 || hasWrongByte(line) {
		return errDamaged
	}
	for {
		if markAtEnd(line) > offset {
			return fmt.Errorf("%w: the rest was written after it was synced", errDamaged)
		}
		var err error
		if line, err = r.ReadBytes('\n'); errors.Is(err, io.EOF) {
			return errCutOff
		} else if err != nil {
			return err
		}
	}
}

// hasWrongByte reports whether a line whose checksum does not match has a byte that no crash leaves: another byte in place
// of the LF of a whole line, or a single zero between other bytes.
func hasWrongByte(line []byte) bool {
	last := len(line) - 1
	if line[last] != '\n' && line[last] != 0 {
		if _, whole := parseFrame(append(bytes.Clone(line[:last]), '\n')); whole {
			return true
		}
	}
	for i := 1; i < last; i++ {
		if line[i] == 0 && line[i-1] != 0 && line[i+1] != 0 {
			return true
		}
	}
	return false
}

// markAtEnd returns the number of bytes in a mark at the end of a line, or 0 if there is none. The LF before the mark may
// be lost.
func markAtEnd(line []byte) int64 {
	begin := bytes.LastIndex(line, []byte(markPrefix)) - checksumDigits - 1
	if begin < 0 {
		return 0
	}
	text, ok := parseFrame(line[begin:])
	if !ok {
		return 0
	}
	return parseMark(text)
}
