// Package walcheck is CRC-32C as the chunks of logs and manifests of Pebble hold it, and the signs of damage in a
// chunk: the bit that a wrong sum tells of, and the sector that was never written.
//
// Invariants:
//
//   - Unmask(Mask(c)) is c.
package walcheck

import (
	"bytes"
	"hash/crc32"
	"math/bits"
)

// OneBit returns which bit of a content of n bytes is flipped, if one is: difference is that of
// the checksums. A checksum is linear. So the difference is that of the flipped bit alone,
// followed by as many zeros as there are bytes behind it. It is rolled back over these zeros.
func OneBit(n int, difference uint32) (at int, bit byte, ok bool) {
	table, places := tables()
	for at := n - 1; at >= 0 && difference != 0; at-- {
		value := places[difference>>24]
		if table[value] == difference && bits.OnesCount8(value) == 1 {
			return at, value, true
		}
		difference = (difference^table[value])<<8 | uint32(value)
	}
	return 0, 0, false
}

// tables returns the table of CRC-32C and, for each high byte, where in it the number with that high byte is.
func tables() (table *crc32.Table, places [256]byte) {
	table = crc32.MakeTable(crc32.Castagnoli)
	for i, v := range table {
		places[v>>24] = byte(i)
	}
	return table, places
}

// Mask returns the form in which logs hold a checksum.
func Mask(c uint32) uint32 { return bits.RotateLeft32(c, 17) + 0xa282ead8 }

// Unmask takes Mask back.
func Unmask(s uint32) uint32 { return bits.RotateLeft32(s-0xa282ead8, 15) }

// Block is the length in bytes of the blocks that logs and manifests consist of.
const Block = 32 << 10

// Sum is CRC-32C in the masked form that LevelDB's logs have.
func Sum(b []byte) uint32 {
	return Mask(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// Sector is the length in bytes of the part of a disk that is written whole or not at all.
const Sector = 512

// chunkHeader is the length of the shortest header of a chunk: fewer zeros than that are no sign.
const chunkHeader = 7

// HasLostSector reports whether the part of a chunk that lies in one sector of
// the disk is nothing but zeros. The chunk begins at byte at.
func HasLostSector(chunk []byte, at int) bool {
	for begin := 0; begin < len(chunk); {
		end := min(len(chunk), begin+Sector-(at+begin)%Sector)
		if end-begin >= chunkHeader && len(bytes.Trim(chunk[begin:end], "\x00")) == 0 {
			return true
		}
		begin = end
	}
	return false
}
