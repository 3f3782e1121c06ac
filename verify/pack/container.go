package pack

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// ErrContainer indicates a ZIP file or a folder whose files cannot be read. Nothing is then known
// about the pack, because the container is not part of it.
var ErrContainer = errors.New("the files of the pack can't be read")

// Bounds of a container.
const (
	maxContainer = 1<<32 - 1 // bytes of a ZIP file, and of the files in any container together
	maxFiles     = 4096      // including folders and ignored files
	maxDirectory = 1 << 20   // bytes of the directory of a ZIP file
)

// member is a file in a container. Each call of open returns a new reader of its content.
type member struct {
	name string
	size int64
	open func() (io.Reader, error)
	at   io.ReaderAt // of the content; nil if the content can only be read sequentially
}

func unreadable(what string) error { return fmt.Errorf("%w: %s", ErrContainer, what) }

// isIgnored reports whether a file is not part of the pack: operating systems and archivers add such files.
func isIgnored(name string) bool {
	last := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(last, ".") || last == "Thumbs.db" || last == "desktop.ini" ||
		strings.HasPrefix(name, "__MACOSX/") || strings.Contains(name, "/__MACOSX/")
}

// isPath reports whether a name refers to a file below its folder on every operating system.
func isPath(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == 0x7f || c == '\\' {
			return false
		}
	}
	for step := range strings.SplitSeq(name, "/") {
		if step == "" || step == "." || step == ".." {
			return false
		}
	}
	return true
}

// withoutFolder removes the folder of the manifest from all names, because packs are often zipped
// together with the folder that contains them. Files outside that folder keep their names.
func withoutFolder(members []member) error {
	folder, found := "", false
	for _, m := range members {
		if rest, is := strings.CutSuffix("/"+m.name, "/"+FileManifest); is {
			if found {
				return unreadable("two files " + FileManifest)
			}
			folder, found = strings.TrimPrefix(rest+"/", "/"), true
		}
	}
	if !found {
		return unreadable("no file " + FileManifest)
	}
	for i := range members {
		members[i].name = strings.TrimPrefix(members[i].name, folder)
	}
	return nil
}

// ZIP signatures, and the lengths of the parts without names.
const (
	localSignature     = "PK\x03\x04"
	directorySignature = "PK\x01\x02"
	endSignature       = "PK\x05\x06"

	localLen     = 30
	directoryLen = 46
	endLen       = 22
	maxComment   = 1<<16 - 1
)

// Methods of compression.
const (
	stored   = 0
	deflated = 8
)

// zipPart is the entry of a file in the directory.
type zipPart struct {
	name                      string
	flags, method             uint16
	compressed, size, headers int64
}

// readZIP reads the directory of a ZIP file.
func readZIP(s *source, size int64) ([]member, error) {
	directory, offset, count, err := readDirectory(s, size)
	if err != nil {
		return nil, err
	}
	var members []member
	seen, used, total := make(map[string]bool, count), int64(0), int64(0)
	for range count {
		p, n, err := parseDirectory(directory)
		if err != nil {
			return nil, err
		}
		directory = directory[n:]
		used += localLen + int64(len(p.name)) + p.compressed
		if used > offset {
			return nil, unreadable("size of a file")
		}
		name, isFolder := strings.CutSuffix(p.name, "/")
		switch {
		case !isPath(name):
			return nil, unreadable("name of a file")
		case isFolder || isIgnored(name):
			continue
		case seen[name]:
			return nil, unreadable("a name twice")
		}
		m, err := p.newMember(s, offset)
		if err != nil {
			return nil, err
		}
		if total += p.size; total > maxContainer {
			return nil, unreadable("size of a file")
		}
		seen[name] = true
		members = append(members, m)
	}
	if len(directory) > 0 {
		return nil, unreadable("directory")
	}
	return members, nil
}

// readDirectory finds the directory of a ZIP file by the record at its end.
func readDirectory(s *source, size int64) (directory []byte, offset int64, count int, err error) {
	if size < endLen || size > maxContainer {
		return nil, 0, 0, unreadable("size")
	}
	tail := make([]byte, min(size, endLen+maxComment))
	if err := readFull(s, tail, size-int64(len(tail))); err != nil {
		return nil, 0, 0, err
	}
	end := len(tail) - endLen
	for ; end >= 0; end-- {
		if string(tail[end:end+4]) == endSignature && int(binary.LittleEndian.Uint16(tail[end+20:])) == len(tail)-end-endLen {
			break
		}
	}
	if end < 0 {
		return nil, 0, 0, unreadable("end of a ZIP file")
	}
	part := tail[end:]
	count = int(binary.LittleEndian.Uint16(part[10:]))
	length := int64(binary.LittleEndian.Uint32(part[12:]))
	offset = int64(binary.LittleEndian.Uint32(part[16:]))
	switch {
	case binary.LittleEndian.Uint32(part[4:]) != 0 || count != int(binary.LittleEndian.Uint16(part[8:])):
		return nil, 0, 0, unreadable("end of a ZIP file")
	case count > maxFiles || length > maxDirectory:
		return nil, 0, 0, unreadable("number of files")
	case offset+length != size-int64(len(part)):
		return nil, 0, 0, unreadable("place of the directory")
	}
	directory = make([]byte, length)
	return directory, offset, count, readFull(s, directory, offset)
}

// readFull reads all of b.
func readFull(s *source, b []byte, offset int64) error {
	n, err := s.ReadAt(b, offset)
	switch {
	case n == len(b): // the last bytes may be returned together with io.EOF
		return nil
	case errors.Is(err, io.EOF):
		return unreadable("size")
	}
	return err
}

// parseDirectory parses the first entry of a directory and returns its length.
func parseDirectory(b []byte) (p zipPart, n int, err error) {
	if len(b) < directoryLen || string(b[:4]) != directorySignature {
		return p, 0, unreadable("directory")
	}
	number := func(at int) int { return int(binary.LittleEndian.Uint16(b[at:])) }
	n = directoryLen + number(28) + number(30) + number(32)
	if len(b) < n || number(34) != 0 {
		return p, 0, unreadable("directory")
	}
	p.flags, p.method = uint16(number(8)), uint16(number(10))
	p.compressed = int64(binary.LittleEndian.Uint32(b[20:]))
	p.size = int64(binary.LittleEndian.Uint32(b[24:]))
	p.headers = int64(binary.LittleEndian.Uint32(b[42:]))
	p.name = string(b[directoryLen : directoryLen+number(28)])
	return p, n, nil
}

// newMember finds the content of a file, which must end before the directory.
func (p *zipPart) newMember(s *source, directory int64) (m member, err error) {
	switch {
	case p.flags&1 != 0:
		return m, unreadable("an encrypted file")
	case p.method != stored && p.method != deflated || p.method == stored && p.compressed != p.size:
		return m, unreadable("compression of a file")
	case p.headers+localLen > directory:
		return m, unreadable("header of a file")
	}
	header := make([]byte, localLen+len(p.name))
	if err := readFull(s, header[:localLen], p.headers); err != nil {
		return m, err
	}
	names, extra := int64(binary.LittleEndian.Uint16(header[26:])), int64(binary.LittleEndian.Uint16(header[28:]))
	begin := p.headers + localLen + names + extra
	if string(header[:4]) != localSignature || names != int64(len(p.name)) || begin+p.compressed > directory {
		return m, unreadable("header of a file")
	}
	if err := readFull(s, header[localLen:], p.headers+localLen); err != nil {
		return m, err
	}
	if string(header[localLen:]) != p.name {
		return m, unreadable("header of a file")
	}
	content := io.NewSectionReader(s, begin, p.compressed)
	m = member{name: p.name, size: p.size}
	if p.method == stored {
		m.at = content
		m.open = func() (io.Reader, error) { return io.NewSectionReader(content, 0, p.size), nil }
		return m, nil
	}
	m.open = func() (io.Reader, error) {
		compressed := bufio.NewReader(io.NewSectionReader(content, 0, p.compressed))
		return &inflater{source: s, compressed: compressed, r: flate.NewReader(compressed), remaining: p.size}, nil
	}
	return m, nil
}

// inflater reads a compressed file. Its content must have exactly the size in the directory and no
// trailing bytes.
type inflater struct {
	source     *source
	compressed *bufio.Reader
	r          io.Reader
	remaining  int64
}

// Read implements io.Reader.
func (f *inflater) Read(b []byte) (int, error) {
	n, err := f.r.Read(b[:min(int64(len(b)), f.remaining+1)])
	f.remaining -= int64(n)
	switch {
	case f.source.err != nil:
		return 0, f.source.err
	case f.remaining < 0 || err != nil && !errors.Is(err, io.EOF):
		return 0, unreadable("compressed bytes of a file")
	case err == nil:
		return n, nil
	}
	if _, more := f.compressed.ReadByte(); f.remaining > 0 || more == nil {
		return 0, unreadable("compressed bytes of a file")
	}
	return n, io.EOF
}

// readFolder lists the files of a folder. It follows no symbolic link.
func readFolder(dir fs.FS, s *source) ([]member, error) {
	var members []member
	count, total := 0, int64(0)
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if count++; count > maxFiles {
			return unreadable("number of files")
		}
		switch {
		case !isPath(name):
			return unreadable("name of a file")
		case d.IsDir() || isIgnored(name):
			return nil
		case !d.Type().IsRegular():
			return unreadable("a symbolic link or a special file")
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if total += info.Size(); total > maxContainer {
			return unreadable("size of a file")
		}
		open := func() (io.Reader, error) {
			return &folderFile{dir: dir, source: s, name: name, remaining: info.Size()}, nil
		}
		members = append(members, member{name: name, size: info.Size(), open: open})
		return nil
	})
	if err != nil && !errors.Is(err, ErrContainer) {
		err = s.note(err)
	}
	return members, err
}

// folderFile reads a file of a folder and closes it at the end. It returns an error if the file has changed.
type folderFile struct {
	dir       fs.FS
	source    *source
	name      string
	file      fs.File
	remaining int64
}

// Read implements io.Reader.
func (f *folderFile) Read(b []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = f.dir.Open(f.name); err != nil {
			return 0, f.source.note(err)
		}
	}
	if n, err = f.file.Read(b); err == nil {
		f.remaining -= int64(n)
		return n, nil
	}
	f.file.Close()
	if errors.Is(err, io.EOF) && f.remaining != int64(n) {
		err = errors.New("a file of the folder has changed")
	}
	if !errors.Is(err, io.EOF) {
		return 0, f.source.note(err)
	}
	return n, err
}

// readerAt returns the content of a file for reading at any offset.
func (m *member) readerAt() (io.ReaderAt, error) {
	if m.at != nil {
		return m.at, nil
	}
	r, err := m.open()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return bytes.NewReader(content), err
}
