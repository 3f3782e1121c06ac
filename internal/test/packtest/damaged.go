package packtest

import (
	"bytes"
	"encoding/binary"
)

// Damaged returns a pack's ZIP file with single changes of its container. Those in right can still be read and hold the
// same contents.
func Damaged(b []byte) (right, wrong []Wrong) {
	end := len(b) - 22
	directory := int(binary.LittleEndian.Uint32(b[end+16:]))
	first := len("checkpoint") + 30 // the first content
	const same, changed, unreadable = 0, 1, 2
	for _, c := range []struct {
		name  string
		state int
		bend  func(b []byte) []byte
	}{
		{"a byte behind the end", unreadable, func(b []byte) []byte { return append(b, 0) }},
		{"a byte before the begin", unreadable, func(b []byte) []byte { return append([]byte{0}, b...) }},
		{"without its end", unreadable, func(b []byte) []byte { return b[:end] }},
		{"without the last byte", unreadable, func(b []byte) []byte { return b[:len(b)-1] }},
		{"empty", unreadable, func([]byte) []byte { return nil }},
		{"a content changed", changed, flipped(first)},
		{"a local header's method", same, flipped(8)},
		{"a local header's flags", same, flipped(7)},
		{"a local header's time", same, flipped(10)},
		{"a local header's sum", same, flipped(14)},
		{"a local header's name", unreadable, flipped(30)},
		{"a directory's maker", same, flipped(directory + 5)},
		{"a directory's method", unreadable, flipped(directory + 10)},
		{"a directory's sum", same, flipped(directory + 16)},
		{"a directory's length", unreadable, flipped(directory + 24)},
		{"a directory's attributes", same, flipped(directory + 38)},
		{"a directory's offset", unreadable, flipped(directory + 42)},
		{"a directory's name", unreadable, flipped(directory + 46)},
		{"the number of files", unreadable, flipped(end + 8)},
		{"the place of the directory", unreadable, flipped(end + 16)},
		{"the length of a comment", unreadable, flipped(end + 20)},
	} {
		w := Wrong{c.name, c.bend(bytes.Clone(b)), c.state == unreadable}
		if c.state == same {
			right = append(right, w)
		} else {
			wrong = append(wrong, w)
		}
	}
	return right, wrong
}

func flipped(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 1; return b }
}
