package pebblestore

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// flippedBit reports whether b begins with a chunk of a log that is whole except for one bit. Such a chunk is damage.
// In a chunk that a crash left, some of the disk's sectors were never written, and hold zeros or an older log's
// bytes. Zeros show that a crash left the chunk (hasLostSector). With an older log's bytes and a written header, the
// chunk looks by chance like one with a wrong bit, in one case out of 10,000. Without a written header it never does,
// because the header names the log. So the last chunk of a file that may have been an older log is not judged by
// flippedBit (isDamaged).
func flippedBit(b []byte, number uint32) bool {
	if len(b) < logHeader {
		return false
	}
	stored := binary.LittleEndian.Uint32(b)
	named := ofLog([5]byte(b[6:]), number)
	if named && sumsUp(b, stored) { // the length is wrong
		return true
	}
	end := logHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if end > len(b) {
		return false
	}
	content := b[6:end]
	sum := chunkSum(content)
	if named && bits.OnesCount32(sum^stored) == 1 { // the sum is wrong
		return true
	}
	at, bit, ok := oneBit(len(content), unmask(sum)^unmask(stored))
	if !ok {
		return false
	}
	header := [5]byte(content)
	if at < len(header) {
		header[at] ^= bit
	}
	return ofLog(header, number)
}

// ofLog reports whether type and number of a chunk are those of a log's.
func ofLog(header [5]byte, number uint32) bool {
	return header[0] >= logFullType && header[0] <= logLastType && binary.LittleEndian.Uint32(header[1:]) == number
}

// sumsUp reports whether the chunk has the right sum with another length than its header says.
func sumsUp(b []byte, stored uint32) bool {
	table, _ := tables()
	c := crc32.Update(0, table, b[6:logHeader])
	for i := logHeader; ; i++ {
		if mask(c) == stored {
			return true
		}
		if i == len(b) {
			return false
		}
		c = crc32.Update(c, table, b[i:i+1])
	}
}

// oneBit returns which bit of a content of n bytes is flipped, if one is: difference is that of
// the checksums. A checksum is linear. So the difference is that of the flipped bit alone,
// followed by as many zeros as there are bytes behind it. It is rolled back over these zeros.
func oneBit(n int, difference uint32) (at int, bit byte, ok bool) {
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

// mask is the form in which logs hold a checksum; unmask takes it back.
func mask(c uint32) uint32 { return bits.RotateLeft32(c, 17) + 0xa282ead8 }

func unmask(s uint32) uint32 { return bits.RotateLeft32(s-0xa282ead8, 15) }
