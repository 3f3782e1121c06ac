// Package storedzip writes ZIP files without compression and with fixed times. docs/spec/evidence-pack.md specifies the format to
// the byte; callers only create files and write their content.
//
// Invariants:
//
//   - The bytes of a ZIP file are determined by the names, contents and order of its files.
//   - The writer holds about 60 bytes per file in memory, and no content.
//   - A name is ASCII without "." or ".." segments, so it cannot escape the directory it is extracted to.
package storedzip

import (
	"encoding/binary"
	"errors"
	"strings"
)

// MaxFiles is the largest number of files.
const MaxFiles = 4096

// MaxName is the length in bytes of the longest name.
const MaxName = 255

// MaxBytes is the size in bytes of the largest ZIP file.
const MaxBytes = 1<<32 - 1

// ErrMalformed indicates an invalid file name.
var ErrMalformed = errors.New("malformed file name")

// ErrTooLarge indicates that a ZIP file would exceed MaxFiles or MaxBytes.
var ErrTooLarge = errors.New("ZIP file too large")

// The signatures, the version of the format that they need, the flag for a descriptor after the content, and the first
// date that ZIP can express.
const (
	localSignature      = 0x04034b50
	descriptorSignature = 0x08074b50
	centralSignature    = 0x02014b50
	endSignature        = 0x06054b50

	version        = 20
	flagDescriptor = 8
	date           = 1<<5 | 1
)

// localLen is the length in bytes of a local header, without its name.
const localLen = 30

// File is a file in a ZIP file.
type File struct {
	Name   string
	Offset int64  // of the content
	Size   int64  // of the content, in bytes
	CRC    uint32 // of the content
}

func (f *File) headerOffset() int64 { return f.Offset - localLen - int64(len(f.Name)) }

// appendLocal appends the local header.
func (f *File) appendLocal(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, localSignature)
	b = appendCommon(b)
	b = append(b, make([]byte, 12)...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.Name)))
	b = append(b, 0, 0)
	return append(b, f.Name...)
}

// appendCommon appends version, flags, method, time and date.
func appendCommon(b []byte) []byte {
	for _, v := range []uint16{version, flagDescriptor, 0, 0, date} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func (f *File) appendSums(b []byte) []byte {
	for _, v := range []uint32{f.CRC, uint32(f.Size), uint32(f.Size)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// appendDescriptor appends the descriptor, which follows the content.
func (f *File) appendDescriptor(b []byte) []byte {
	return f.appendSums(binary.LittleEndian.AppendUint32(b, descriptorSignature))
}

// appendCentral appends the file's entry of the central directory.
func (f *File) appendCentral(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, centralSignature)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = f.appendSums(appendCommon(b))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(f.Name)))
	b = append(b, make([]byte, 12)...)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.headerOffset()))
	return append(b, f.Name...)
}

// appendEnd appends the end record of a ZIP file whose central directory begins at an offset.
func appendEnd(b []byte, files, size int, offset int64) []byte {
	b = binary.LittleEndian.AppendUint32(b, endSignature)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(files))
	b = binary.LittleEndian.AppendUint16(b, uint16(files))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = binary.LittleEndian.AppendUint32(b, uint32(offset))
	return append(b, 0, 0)
}

// validName reports whether a name consists of ASCII letters, digits, dots and hyphens, in segments between
// single slashes, none of which consists only of dots.
func validName(name string) bool {
	if len(name) > MaxName {
		return false
	}
	for step := range strings.SplitSeq(name, "/") {
		if strings.Trim(step, ".") == "" {
			return false
		}
		for i := range len(step) {
			c := step[i]
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-') {
				return false
			}
		}
	}
	return true
}
