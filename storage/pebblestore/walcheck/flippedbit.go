package walcheck

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// FlippedBit reports whether b begins with a chunk of the given log that is whole except for one bit. Such a chunk is
// damage. In a chunk that a crash left, some sectors were never written and contain zeros or bytes of an older log. Zeros
// show that a crash left the chunk (hasLostSector). With bytes of an older log after a header that was written, the chunk
// looks like one with a flipped bit in 1 of 10,000 cases. If the header was not written, it never does, because the
// header contains the number of the log. So FlippedBit does not decide about the last chunk of a file that may have been
// an older log (isDamaged).
func FlippedBit(b []byte, number uint32) bool {
	if len(b) < logHeader {
		return false
	}
	stored := binary.LittleEndian.Uint32(b)
	named := ofLog([5]byte(b[6:]), number)
	if named && sumsUp(b, stored) { // the flipped bit is in the length
		return true
	}
	end := logHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if end > len(b) {
		return false
	}
	content := b[6:end]
	sum := Sum(content)
	if named && bits.OnesCount32(sum^stored) == 1 { // the flipped bit is in the checksum
		return true
	}
	at, bit, ok := flippedBit(len(content), unmask(sum)^unmask(stored))
	if !ok {
		return false
	}
	header := [5]byte(content)
	if at < len(header) {
		header[at] ^= bit
	}
	return ofLog(header, number)
}

// ofLog reports whether the type and number of a chunk are valid in the log with that number.
func ofLog(header [5]byte, number uint32) bool {
	return header[0] >= logFullType && header[0] <= logLastType && binary.LittleEndian.Uint32(header[1:]) == number
}

// sumsUp reports whether the chunk would have the right checksum if its length were different.
func sumsUp(b []byte, stored uint32) bool {
	table := crc32.MakeTable(crc32.Castagnoli)
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
