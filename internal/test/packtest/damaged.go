package packtest

import (
	"bytes"
	"encoding/binary"
)

// Damaged returns a pack's ZIP file with single changes of its container.
func Damaged(b []byte) (all []Wrong) {
	end := len(b) - 22
	directory := int(binary.LittleEndian.Uint32(b[end+16:]))
	first := len("checkpoint") + 30 // the first content
	for _, c := range []struct {
		name string
		bend func(b []byte) []byte
	}{
		{"a byte behind the end", func(b []byte) []byte { return append(b, 0) }},
		{"a byte before the begin", func(b []byte) []byte { return append([]byte{0}, b...) }},
		{"without its end", func(b []byte) []byte { return b[:end] }},
		{"without the last byte", func(b []byte) []byte { return b[:len(b)-1] }},
		{"empty", func([]byte) []byte { return nil }},
		{"a content changed", flipped(first)},
		{"a local header's method", flipped(8)},
		{"a local header's flags", flipped(7)},
		{"a local header's time", flipped(10)},
		{"a local header's sum", flipped(14)},
		{"a local header's name", flipped(30)},
		{"a directory's maker", flipped(directory + 5)},
		{"a directory's method", flipped(directory + 10)},
		{"a directory's sum", flipped(directory + 16)},
		{"a directory's length", flipped(directory + 24)},
		{"a directory's attributes", flipped(directory + 38)},
		{"a directory's offset", flipped(directory + 42)},
		{"a directory's name", flipped(directory + 46)},
		{"the number of files", flipped(end + 8)},
		{"the place of the directory", flipped(end + 16)},
		{"the length of a comment", flipped(end + 20)},
	} {
		all = append(all, Wrong{c.name, c.bend(bytes.Clone(b))})
	}
	return all
}

func flipped(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 1; return b }
}
