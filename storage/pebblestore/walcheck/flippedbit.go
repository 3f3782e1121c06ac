package walcheck

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// FlippedBit reports whether b begins with a chunk of a log that is whole except for one bit. Such a chunk is damage.
// In a chunk that a crash left, some of the disk's sectors were never written, and hold zeros or an older log's
// bytes. Zeros show that a crash left the chunk (HasLostSector). With an older log's bytes and a written
// header, the chunk looks by chance like one with a wrong bit, in one case out of 10,000. Without a written header it
// never does, because the header names the log. So FlippedBit does not judge the last chunk of a file that may have
// been an older log (IsDamaged).
func FlippedBit(b []byte, number uint32) bool {
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
	sum := Sum(content)
	if named && bits.OnesCount32(sum^stored) == 1 { // the sum is wrong
		return true
	}
	at, bit, ok := OneBit(len(content), Unmask(sum)^Unmask(stored))
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
	table := crc32.MakeTable(crc32.Castagnoli)
	c := crc32.Update(0, table, b[6:logHeader])
	for i := logHeader; ; i++ {
		if Mask(c) == stored {
			return true
		}
		if i == len(b) {
			return false
		}
		c = crc32.Update(c, table, b[i:i+1])
	}
}
