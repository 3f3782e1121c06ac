// Package checksum is CRC-32C as the logs and manifests of Pebble hold it, and the bit that a wrong sum tells of.
//
// Invariants:
//
//   - Unmask(Mask(c)) is c.
package checksum

import (
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
