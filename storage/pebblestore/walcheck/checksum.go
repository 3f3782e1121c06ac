package walcheck

import (
	"bytes"
	"hash/crc32"
	"math/bits"
)

// flippedBit returns which bit of a content of n bytes is flipped, if exactly one is. difference is the XOR of the
// stored and the computed checksum. A CRC is linear, so the difference is the checksum of the flipped bit alone,
// followed by as many zero bytes as follow it in the content. flippedBit rolls it back over these zeros.
func flippedBit(n int, difference uint32) (at int, bit byte, ok bool) {
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

// tables returns the table of CRC-32C and, for each high byte, the index of the entry with that high byte.
func tables() (table *crc32.Table, places [256]byte) {
	table = crc32.MakeTable(crc32.Castagnoli)
	for i, v := range table {
		places[v>>24] = byte(i)
	}
	return table, places
}

// mask returns the form in which logs and manifests store a checksum.
func mask(c uint32) uint32 { return bits.RotateLeft32(c, 17) + 0xa282ead8 }

// unmask is the inverse of mask.
func unmask(s uint32) uint32 { return bits.RotateLeft32(s-0xa282ead8, 15) }

// Block is the length in bytes of the blocks of logs and manifests.
const Block = 32 << 10

// Sum returns the CRC-32C of b in the masked form of LevelDB's logs.
func Sum(b []byte) uint32 {
	return mask(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// Sector is the length in bytes of the unit that a disk writes completely or not at all.
const Sector = 512

// chunkHeader is the length of the shortest header of a chunk, which is the header in a manifest. Fewer zeros than that
// do not indicate a lost sector.
const chunkHeader = 7

// hasLostSector reports whether the part of a chunk in one of its sectors is nothing but zeros, because the sector was
// never written. The chunk begins at byte at.
func hasLostSector(chunk []byte, at int) bool {
	for begin := 0; begin < len(chunk); {
		end := min(len(chunk), begin+Sector-(at+begin)%Sector)
		if end-begin >= chunkHeader && len(bytes.Trim(chunk[begin:end], "\x00")) == 0 {
			return true
		}
		begin = end
	}
	return false
}
