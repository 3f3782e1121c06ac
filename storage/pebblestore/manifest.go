package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
)

// checkManifest refuses a store whose manifest is damaged, and returns the log position in the manifest. Pebble takes
// the first record that it can't read for the manifest's end. The content of the records behind it is then lost, and
// the tables that they name are deleted as unused. So damage has to be found before Pebble opens the store.
//
// Each change of the manifest is synced before the next one is written. So a crash can only leave the last record
// unfinished: cut off, or with sectors that were never written. Everything else is damage. A chunk that is not whole
// is damage too if it lies before the end that the store file knows.
func checkManifest(fs vfs.FS, dir string, number uint64, state storeState) (logPosition, error) {
	name := fmt.Sprintf("%s%06d", manifestPrefix, number)
	b, err := readWholeFile(fs, fs.PathJoin(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return logPosition{}, corruptValue(name + ", the store's manifest, is missing: " + bringBack)
	}
	if err != nil {
		return logPosition{}, err
	}
	at, damaged := damagedChunk(b)
	switch known := state.manifest == number; {
	case damaged || known && int64(at) < state.length && at < len(b):
		return logPosition{}, corruptValue(fmt.Sprintf("%s is damaged at byte %d: %s", name, at, bringBack))
	case known && int64(len(b)) < state.length:
		return logPosition{}, corruptValue(fmt.Sprintf("%s is cut off: it has %d bytes, and had %d: %s", name, len(b), state.length, bringBack))
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

// logPosition is the state of the logs by a manifest.
type logPosition struct {
	oldest uint64 // number of the oldest log whose content may not be in tables
	next   uint64 // a record of that log begins at most here: the sequence number behind all that were given by then
}

// The fields of a manifest's record that come before its tables, each a tag and
// numbers: https://github.com/cockroachdb/pebble, internal/manifest/version_edit.go.
const (
	tagComparer       = 1
	tagLogNumber      = 2
	tagNextFileNumber = 3
	tagLastSequence   = 4
	tagPrevLogNumber  = 9

	firstSequence = 10 // the first number that Pebble gives
)

// readLogPosition reads a manifest up to its end, or to the record that a crash left unfinished.
func readLogPosition(b []byte) (logPosition, error) {
	p := logPosition{next: firstSequence}
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

// read reads the fields of a record up to the first that is of no use here.
func (p *logPosition) read(edit []byte) {
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

// The form of a manifest: blocks in which chunks lie one behind the other, each checksum (4), length (2), type (1),
// payload. The rest of a block that has no room for a chunk is zero.
const (
	chunkHeader    = 7
	lastChunkType  = 4
	maxManifestEnd = 1 << 20 // an unfinished record is smaller
)

// damagedChunk returns where a manifest is damaged, if it is.
func damagedChunk(b []byte) (at int, damaged bool) {
	for at < len(b) {
		rest := b[at:min(len(b), (at/walcheck.Block+1)*walcheck.Block)] // of the block
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

// wholeChunk returns the length of the chunk that b begins with, 0 when there is none that is whole and right.
func wholeChunk(b []byte) int {
	if len(b) < chunkHeader {
		return 0
	}
	n := chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if b[6] == 0 || b[6] > lastChunkType || n > len(b) || walcheck.Sum(b[6:n]) != binary.LittleEndian.Uint32(b) {
		return 0
	}
	return n
}

// unfinished reports whether a crash may have left this end of a manifest, of
// which the first chunk, in rest, is not right. It begins at byte at.
func unfinished(end, rest []byte, at int) bool {
	written := bytes.TrimRight(end, "\x00")
	if len(written) < chunkHeader {
		return true
	}
	if len(end) > maxManifestEnd || chunkFollows(end[1:]) {
		return false
	}
	sum := binary.LittleEndian.Uint32(end)
	if walcheck.Sum(written[6:]) == sum || walcheck.Sum(end[6:]) == sum {
		return false // it is whole but for its length
	}
	n := chunkHeader + int(binary.LittleEndian.Uint16(end[4:]))
	whole := n == len(end) || n <= len(rest) && n <= len(written)
	return !whole || walcheck.HasLostSector(rest[:n], at)
}

// chunkFollows reports whether there is a right chunk somewhere in b.
func chunkFollows(b []byte) bool {
	for i := range b {
		if n := wholeChunk(b[i:min(len(b), i+walcheck.Block)]); n > chunkHeader {
			return true
		}
	}
	return false
}
