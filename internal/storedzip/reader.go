package storedzip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Read returns the files of a ZIP file of size bytes, in their order. All bytes but the contents are as Writer
// writes them. The caller compares the CRC of each content. Errors wrap ErrMalformed, or are of r.
func Read(r io.ReaderAt, size int64) ([]File, error) {
	directory, count, err := readDirectory(r, size)
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, count)
	end, rest := int64(0), directory
	for range count {
		f, n, err := parseCentral(rest)
		if err != nil {
			return nil, err
		}
		if f.headerOffset() != end || f.end() > size {
			return nil, malformed("place of a file")
		}
		if err := f.checkParts(r); err != nil {
			return nil, err
		}
		files, rest, end = append(files, f), rest[n:], f.end()
	}
	if len(rest) > 0 || end+int64(len(directory))+endLen != size {
		return nil, malformed("directory")
	}
	return files, nil
}

func malformed(what string) error { return fmt.Errorf("%s: %w", what, ErrMalformed) }

// readDirectory returns the directory and the number of files in it.
func readDirectory(r io.ReaderAt, size int64) (directory []byte, count int, err error) {
	if size < endLen || size > MaxBytes {
		return nil, 0, malformed("length")
	}
	end, err := readAt(r, size-endLen, endLen)
	if err != nil {
		return nil, 0, err
	}
	count = int(binary.LittleEndian.Uint16(end[10:]))
	length, offset := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	if count > MaxFiles || offset+length+endLen != size || length > int64(count)*(centralLen+MaxName) ||
		!bytes.Equal(end, appendEnd(nil, count, int(length), offset)) {
		return nil, 0, malformed("end")
	}
	directory, err = readAt(r, offset, int(length))
	return directory, count, err
}

// parseCentral reads a file's part of the directory and returns its length.
func parseCentral(b []byte) (f File, n int, err error) {
	if len(b) < centralLen {
		return f, 0, malformed("directory")
	}
	n = centralLen + int(binary.LittleEndian.Uint16(b[28:]))
	if len(b) < n {
		return f, 0, malformed("directory")
	}
	f = File{Name: string(b[centralLen:n]), CRC: binary.LittleEndian.Uint32(b[16:]),
		Size: int64(binary.LittleEndian.Uint32(b[24:]))}
	f.Offset = int64(binary.LittleEndian.Uint32(b[42:])) + localLen + int64(len(f.Name))
	if !validName(f.Name) || !bytes.Equal(b[:n], f.appendCentral(nil)) {
		return f, 0, malformed("directory")
	}
	return f, n, nil
}

// checkParts checks the header and the descriptor.
func (f *File) checkParts(r io.ReaderAt) error {
	before, err := readAt(r, f.headerOffset(), localLen+len(f.Name))
	if err != nil {
		return err
	}
	behind, err := readAt(r, f.Offset+f.Size, descriptorLen)
	if err != nil {
		return err
	}
	if !bytes.Equal(before, f.appendLocal(nil)) || !bytes.Equal(behind, f.appendDescriptor(nil)) {
		return malformed("header of a file")
	}
	return nil
}

func readAt(r io.ReaderAt, offset int64, n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := r.ReadAt(b, offset)
	switch {
	case got == n: // io.EOF may come with the last bytes
		return b, nil
	case errors.Is(err, io.EOF):
		return nil, malformed("length")
	}
	return nil, fmt.Errorf("read ZIP file: %w", err)
}
