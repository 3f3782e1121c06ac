package index

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// finder looks for a text in any case. Only one goroutine may use it at a time.
type finder struct {
	text  []byte // in lower case
	ascii bool   // text has only ASCII characters
	lower []byte // of the latest document
}

// newFinder returns a finder of a text in lower case.
func newFinder(text string) *finder {
	return &finder{text: []byte(text), ascii: lowerASCII([]byte(text))}
}

// Characters beyond ASCII whose lower case is in ASCII.
var foldedToASCII = [][]byte{[]byte("\u212a"), []byte("\u0130")}

// in reports whether strings.ToLower of a document contains the text. Most documents have only ASCII characters, which are compared at
// several GB/s.
func (f *finder) in(document []byte) bool {
	f.lower = append(f.lower[:0], document...)
	plain := lowerASCII(f.lower)
	switch {
	case f.ascii && bytes.Contains(f.lower, f.text):
		return true
	case plain, f.ascii && !bytes.Contains(document, foldedToASCII[0]) && !bytes.Contains(document, foldedToASCII[1]):
		return false
	}
	return strings.Contains(strings.ToLower(string(document)), string(f.text))
}

// lowerASCII converts the ASCII letters of b to lower case, and reports whether all of its characters are in ASCII.
func lowerASCII(b []byte) (ascii bool) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	var seen uint64
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		low := x &^ high
		upper := (low + (0x80-'A')*ones) &^ (low + (0x80-'Z'-1)*ones) &^ x & high // the highest bit of each byte of A to Z
		binary.LittleEndian.PutUint64(b, x|upper>>2)
		seen |= x
		b = b[8:]
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
		seen |= uint64(c)
	}
	return seen&high == 0
}
