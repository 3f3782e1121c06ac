package packtest

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/agentledger/agentledger/verify/pack"
)

// Contents returns all files of the pack, including the manifest.
func (p *Parts) Contents(t testing.TB) []File {
	t.Helper()
	text, err := p.sealed()
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(p.Files), File{pack.FileManifest, or(p.Text, text)})
}

// Folder returns the pack as unpacked into a directory.
func (p *Parts) Folder(t testing.TB) fstest.MapFS {
	t.Helper()
	dir := fstest.MapFS{}
	for _, f := range p.Contents(t) {
		dir[f.Name] = &fstest.MapFile{Data: []byte(f.Content), Mode: 0o644}
	}
	return dir
}

// packed is a file in a ZIP file that another program wrote.
type packed struct {
	File
	method     uint16
	flags      uint16
	compressed []byte // nil for the compressed content
	size       int    // in the directory
	crc        uint32
	local      string // name in the local header
	offset     int    // added to the offset in the directory
	disk       uint16
	shared     bool // its content isn't written, as if it were that of another file
}

func deflate(content string, level int) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err != nil {
		panic(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// packAll returns the files compressed.
func packAll(files []File, level int) (all []packed) {
	for _, f := range files {
		all = append(all, packed{File: f, method: zip.Deflate, compressed: deflate(f.Content, level), size: len(f.Content),
			crc: crc32.ChecksumIEEE([]byte(f.Content)), local: f.Name})
	}
	return all
}

// writePacked writes a ZIP file with times, extra fields and a comment, as archivers do.
func writePacked(files []packed, comment string) []byte {
	var b, directory []byte
	u16, u32 := binary.LittleEndian.AppendUint16, binary.LittleEndian.AppendUint32
	extra := "UT\x05\x00\x01\x00\x00\x00\x60"
	for _, f := range files {
		offset := uint32(len(b) + f.offset)
		if !f.shared {
			b = append(b, "PK\x03\x04\x14\x00"...)
			b = u16(u16(b, f.flags), f.method)
			b = u32(u32(u32(u32(b, 0x59a5_0000), f.crc), uint32(len(f.compressed))), uint32(f.size))
			b = append(append(append(u16(u16(b, uint16(len(f.local))), uint16(len(extra))), f.local...), extra...), f.compressed...)
		}
		directory = append(directory, "PK\x01\x02\x1e\x03\x14\x00"...)
		directory = u16(u16(directory, f.flags), f.method)
		directory = u32(u32(u32(u32(directory, 0x59a5_0000), f.crc), uint32(len(f.compressed))), uint32(f.size))
		directory = u16(u16(u16(u16(directory, uint16(len(f.Name))), uint16(len(extra))), 0), f.disk)
		directory = u32(u32(u16(directory, 1), 0x81a4_0000), offset)
		directory = append(append(directory, f.Name...), extra...)
	}
	end := append([]byte("PK\x05\x06\x00\x00\x00\x00"), 0, 0, 0, 0)
	binary.LittleEndian.PutUint16(end[8:], uint16(len(files)))
	binary.LittleEndian.PutUint16(end[10:], uint16(len(files)))
	end = append(u16(u32(u32(end, uint32(len(directory))), uint32(len(b))), uint16(len(comment))), comment...)
	return slices.Concat(b, directory, end)
}

// Packed returns a pack in ZIP files of other programs: some with the same contents, some that cannot be read.
func Packed(t testing.TB, p *Parts) (right, unreadable []Wrong) {
	t.Helper()
	files := p.Contents(t)
	file := func(name, content string) packed { return packAll([]File{{name, content}}, 6)[0] }
	within := func(folder string, files []File) (all []File) {
		for _, f := range files {
			all = append(all, File{folder + f.Name, f.Content})
		}
		return all
	}
	reversed := slices.Clone(files)
	slices.Reverse(reversed)
	more := append(packAll(within("november/", files), 6), file("november/", ""), file("november/policies/", ""),
		file("november/.DS_Store", "x"), file("__MACOSX/november/._policy", "x"), file("november/Thumbs.db", "x"),
		file("desktop.ini", "x"), file("november/policies/.hidden", "x"))
	storedAll := packAll(files, 6)
	for i := range storedAll {
		storedAll[i].method, storedAll[i].compressed, storedAll[i].crc = zip.Store, []byte(storedAll[i].Content), 1
	}
	for _, c := range []struct {
		name  string
		files []packed
		note  string
	}{
		{"packed again: compressed", packAll(files, 6), ""},
		{"packed again: without compression, with wrong sums", storedAll, ""},
		{"packed again: fixed Huffman codes", packAll(files, flate.HuffmanOnly), ""},
		{"packed again: stored blocks", packAll(files, flate.NoCompression), ""},
		{"packed again: in another order, with a comment", packAll(reversed, 9), "made by PK\x05\x06 hand"},
		{"packed again: with its folder and files of operating systems", more, ""},
	} {
		right = append(right, Wrong{Name: c.name, Bytes: writePacked(c.files, c.note)})
	}
	at := func(name string) int { return slices.IndexFunc(files, func(f File) bool { return f.Name == name }) }
	for _, c := range []struct {
		name string
		bend func([]packed) []packed
	}{
		{"a name twice", func(f []packed) []packed { return append(f, f[at(pack.FileReport)]) }},
		{"two manifests", func(f []packed) []packed { return append(f, file("old/manifest.json", "{}")) }},
		{"no manifest", func(f []packed) []packed { return f[:len(f)-1] }},
		{"a name that leads out of the folder", func(f []packed) []packed { return append(f, file("../../etc/passwd", "x")) }},
		{"an absolute name", func(f []packed) []packed { return append(f, file("/etc/passwd", "x")) }},
		{"a name with a backslash", func(f []packed) []packed { return append(f, file(`a\b`, "x")) }},
		{"a name with a line end", func(f []packed) []packed { return append(f, file("a\nb", "x")) }},
		{"an encrypted file", func(f []packed) []packed { f[3].flags = 1; return f }},
		{"an unknown compression", func(f []packed) []packed { f[3].method = 12; return f }},
		{"another name in a header", func(f []packed) []packed { f[1].local = "keys.jsom"; return f }},
		{"a file on another disk", func(f []packed) []packed { f[1].disk = 1; return f }},
		{"a header at another place", func(f []packed) []packed { f[1].offset = 1; return f }},
		{"files that overlap", func(f []packed) []packed {
			for len(f) < 1000 {
				f = append(f, packed{File: File{Name: fmt.Sprintf(".%d", len(f))}, compressed: f[0].compressed, shared: true})
			}
			return f
		}},
		{"more bytes than the directory has", func(f []packed) []packed {
			f[at(pack.FileReport)].compressed = deflate(strings.Repeat("a", 1<<20), 9)
			return f
		}},
		{"fewer bytes than the directory has", func(f []packed) []packed { f[at(pack.FileReport)].size++; return f }},
		{"more bytes than a pack may have", func(f []packed) []packed {
			for _, name := range []string{pack.FileRecords, pack.FileReport} {
				f[at(name)].size = 3 << 30
			}
			return f
		}},
		{"bytes after compressed ones", func(f []packed) []packed {
			f[at(pack.FileReport)].compressed = append(f[at(pack.FileReport)].compressed, 0)
			return f
		}},
		{"compressed bytes cut off", func(f []packed) []packed {
			c := &f[at(pack.FileReport)].compressed
			*c = (*c)[:len(*c)-1]
			return f
		}},
		{"compressed bytes that are none", func(f []packed) []packed {
			f[at(pack.FileReport)].compressed = []byte("\xff\xff\xff\xff")
			return f
		}},
		{"a distance before the begin", func(f []packed) []packed {
			f[at(pack.FileReport)].compressed = []byte{0x63, 0x00, 0x11, 0x00} // one literal, then a copy from 5 bytes before
			return f
		}},
		{"too many files", func(f []packed) []packed {
			for len(f) <= 4096 {
				f = append(f, packed{File: File{Name: "."}, method: zip.Store, local: "."})
			}
			return f
		}},
	} {
		unreadable = append(unreadable, Wrong{"packed again: " + c.name, writePacked(c.bend(packAll(files, 6)), ""), true})
	}
	return right, unreadable
}

// BadFolders returns directories with a pack that cannot be read.
func BadFolders(t testing.TB, p *Parts) map[string]fs.FS {
	t.Helper()
	bad := map[string]fs.FS{}
	add := func(name string, bend func(fstest.MapFS)) {
		dir := p.Folder(t)
		bend(dir)
		bad[name] = dir
	}
	add("no manifest", func(d fstest.MapFS) { delete(d, pack.FileManifest) })
	add("two manifests", func(d fstest.MapFS) { d["old/"+pack.FileManifest] = &fstest.MapFile{} })
	add("a symbolic link", func(d fstest.MapFS) {
		d[pack.FileReport] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink | 0o777}
	})
	add("a pipe", func(d fstest.MapFS) { d["pipe"] = &fstest.MapFile{Mode: fs.ModeNamedPipe} })
	add("a name with a backslash", func(d fstest.MapFS) { d[`a\b`] = &fstest.MapFile{} })
	add("too many files", func(d fstest.MapFS) {
		for i := range 4096 {
			d[fmt.Sprintf(".cache/%d", i)] = &fstest.MapFile{}
		}
	})
	return bad
}
