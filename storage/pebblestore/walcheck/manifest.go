package walcheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ManifestPrefix begins the name of a manifest. The rest is its number.
const ManifestPrefix = "MANIFEST-"

// ManifestName returns the name of the manifest with the given number.
func ManifestName(number uint64) string { return fmt.Sprintf("%s%06d", ManifestPrefix, number) }

// CheckManifest checks the current manifest of a store, and returns the log position that it contains. synced is the
// number of its bytes that are known to be synced, or 0. It returns an error that wraps storage.ErrCorrupt if the
// manifest is missing, damaged or cut off.
//
// A crash can only leave the last record unfinished: cut off, or with sectors that were never written. Everything else is
// damage, and so is a chunk that is not whole before the end of the synced bytes.
func CheckManifest(fs vfs.FS, dir string, number uint64, synced int64) (LogPosition, error) {
	name := ManifestName(number)
	b, err := readWholeFile(fs, fs.PathJoin(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return LogPosition{}, corrupt(name + ", the store's manifest, is missing")
	}
	if err != nil {
		return LogPosition{}, err
	}
	at, damaged := damagedChunk(b)
	switch {
	case damaged || int64(at) < synced && at < len(b):
		return LogPosition{}, corrupt(fmt.Sprintf("%s is damaged at byte %d", name, at))
	case int64(len(b)) < synced:
		return LogPosition{}, corrupt(fmt.Sprintf("%s is cut off: it has %d bytes, and had %d", name, len(b), synced))
	}
	return readLogPosition(b)
}

func readWholeFile(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// LogPosition is where the replay of the logs begins, as stated by a manifest.
type LogPosition struct {
	oldest uint64 // number of the oldest log whose content may not be in tables yet
	next   uint64 // upper bound for the first sequence number in that log: the number after all that were assigned by then
}

// Tags of the fields that precede the tables in a record of a manifest. Each field is a tag and numbers:
// https://github.com/cockroachdb/pebble, internal/manifest/version_edit.go.
const (
	tagComparer       = 1
	tagLogNumber      = 2
	tagNextFileNumber = 3
	tagLastSequence   = 4
	tagPrevLogNumber  = 9

	firstSequence = 10 // the first number that Pebble assigns
)

// readLogPosition reads a manifest up to its end, or up to the record that a crash left unfinished.
func readLogPosition(b []byte) (LogPosition, error) {
	p := LogPosition{next: firstSequence}
	r := record.NewReader(bytes.NewReader(b), 0)
	for {
		edit, err := r.Next()
		var text []byte
		if err == nil {
			text, err = io.ReadAll(edit)
		}
		if errors.Is(err, io.EOF) || record.IsInvalidRecord(err) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		p.read(text)
	}
}

// read reads the fields of a record up to the first one that is not needed.
func (p *LogPosition) read(edit []byte) {
	for len(edit) > 0 {
		tag, n := binary.Uvarint(edit)
		value, m := binary.Uvarint(edit[max(n, 0):])
		if n <= 0 || m <= 0 {
			return
		}
		edit = edit[n+m:]
		switch tag {
		case tagComparer: // value is the length of its name
			edit = edit[min(value, uint64(len(edit))):]
		case tagLogNumber:
			p.oldest = max(p.oldest, value)
		case tagLastSequence:
			p.next = max(p.next, value+1)
			return
		case tagNextFileNumber, tagPrevLogNumber:
		default:
			return
		}
	}
}

// A manifest consists of blocks of chunks. A chunk is checksum (4), length (2), type (1) and payload. The rest of a block
// that is too short for a chunk is zero.
const (
	lastChunkType  = 4
	maxManifestEnd = 1 << 20 // an unfinished record is smaller
)

// damagedChunk returns the offset of the first chunk of a manifest that is not whole, and whether it is damage. If all
// are whole, the offset is the length.
func damagedChunk(b []byte) (at int, damaged bool) {
	for at < len(b) {
		rest := b[at:min(len(b), (at/Block+1)*Block)] // of the block
		if len(rest) < chunkHeader && at+len(rest) < len(b) {
			at += len(rest)
			continue
		}
		if n := wholeChunk(rest); n > 0 {
			at += n
			continue
		}
		return at, !unfinished(b[at:], rest, at)
	}
	return at, false
}

// wholeChunk returns the length of the chunk that b begins with, or 0 if it is not whole.
func wholeChunk(b []byte) int {
	if len(b) < chunkHeader {
		return 0
	}
	n := chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if b[6] == 0 || b[6] > lastChunkType || n > len(b) || Sum(b[6:n]) != binary.LittleEndian.Uint32(b) {
		return 0
	}
	return n
}

// unfinished reports whether a crash may have left end, the end of a manifest that begins at byte at and whose first
// chunk, in rest, is not whole.
func unfinished(end, rest []byte, at int) bool {
	written := bytes.TrimRight(end, "\x00")
	if len(written) < chunkHeader {
		return true
	}
	if len(end) > maxManifestEnd || chunkFollows(end[1:]) {
		return false
	}
	sum := binary.LittleEndian.Uint32(end)
	if Sum(written[6:]) == sum || Sum(end[6:]) == sum {
		return false // it is whole except for its length
	}
	n := chunkHeader + int(binary.LittleEndian.Uint16(end[4:]))
	whole := n == len(end) || n <= len(rest) && n <= len(written)
	return !whole || hasLostSector(rest[:n], at)
}

// chunkFollows reports whether b contains a whole chunk.
func chunkFollows(b []byte) bool {
	for i := range b {
		if n := wholeChunk(b[i:min(len(b), i+Block)]); n > chunkHeader {
			return true
		}
	}
	return false
}
