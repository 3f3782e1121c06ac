package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkManifest refuses a store whose manifest is damaged. Pebble takes the
// first record that it can't read for the manifest's end: what the records
// behind it say is gone, and the tables that they name are deleted as unused.
// So this has to be found before Pebble opens the store.
//
// Each change of the manifest is synced before the next one is written. So a
// crash can only leave the last record unfinished: cut off, or with sectors that
// were never written. Everything else is damage.
func checkManifest(fs vfs.FS, dir string) error {
	found, err := pebble.Peek(dir, fs)
	if err != nil || !found.Exists {
		return err
	}
	f, err := fs.Open(fs.PathJoin(dir, fs.PathBase(found.ManifestFilename)))
	if errors.Is(err, os.ErrNotExist) {
		return corrupt("manifest is missing")
	}
	if err != nil {
		return err
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if at, damaged := damagedChunk(b); damaged {
		return corrupt(fmt.Sprintf("manifest is damaged at byte %d", at))
	}
	return nil
}

// The form of a manifest: blocks in which chunks lie one behind the other, each
// checksum (4), length (2), type (1), payload. What is left of a block that has
// no room for a chunk is zero.
const (
	manifestBlock  = 32 << 10
	chunkHeader    = 7
	lastChunkType  = 4
	diskSector     = 512
	maxManifestEnd = 1 << 20 // an unfinished record is smaller
)

// damagedChunk returns where a manifest is damaged, if it is.
func damagedChunk(b []byte) (at int, damaged bool) {
	for at < len(b) {
		rest := b[at:min(len(b), (at/manifestBlock+1)*manifestBlock)] // of the block
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

// wholeChunk returns the length of the chunk that b begins with, 0 when there is
// none that is whole and right.
func wholeChunk(b []byte) int {
	if len(b) < chunkHeader {
		return 0
	}
	n := chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if b[6] == 0 || b[6] > lastChunkType || n > len(b) || chunkSum(b[6:n]) != binary.LittleEndian.Uint32(b) {
		return 0
	}
	return n
}

// chunkSum is CRC-32C in the masked form that LevelDB's logs have.
func chunkSum(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
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
	if chunkSum(written[6:]) == sum || chunkSum(end[6:]) == sum {
		return false // it is whole but for its length
	}
	n := chunkHeader + int(binary.LittleEndian.Uint16(end[4:]))
	whole := n == len(end) || n <= len(rest) && n <= len(written)
	return !whole || hasLostSector(rest[:n], at)
}

// chunkFollows reports whether there is a right chunk somewhere in b.
func chunkFollows(b []byte) bool {
	for i := range b {
		if n := wholeChunk(b[i:min(len(b), i+manifestBlock)]); n > chunkHeader {
			return true
		}
	}
	return false
}

// hasLostSector reports whether the part of a chunk that lies in one sector of
// the disk is nothing but zeros. The chunk begins at byte at.
func hasLostSector(chunk []byte, at int) bool {
	for begin := 0; begin < len(chunk); {
		end := min(len(chunk), begin+diskSector-(at+begin)%diskSector)
		if end-begin >= chunkHeader && len(bytes.Trim(chunk[begin:end], "\x00")) == 0 {
			return true
		}
		begin = end
	}
	return false
}
