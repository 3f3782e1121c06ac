package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log is blocks of chunks like a manifest (see manifestBlock), with a longer header: checksum (4), length (2), type
// (1), number of the log (4), sync offset (8). A chunk of the older form has no sync offset. A log file may have been
// another log before, and may still have chunks with that log's number. The sync offset of a chunk is a promise: when
// the writer wrote the chunk, it had synced at least that much of this log.
const (
	logBlock       = manifestBlock
	logHeader      = 19
	olderLogHeader = 11

	olderFullType, olderLastType = 5, 8
	logFullType, logFirstType    = 9, 10
	logLastType                  = 12
	batchHeader                  = 12 // sequence number (8), count (4): the beginning of a record
)

// chunk is a whole chunk of a log.
type chunk struct {
	length  int // with its header
	begins  bool
	synced  uint64 // its sync offset
	payload []byte
}

// logChunk reads the chunk of that log that b begins with, if it is whole.
func logChunk(b []byte, number uint32) (c chunk, ok bool) {
	if len(b) < olderLogHeader || binary.LittleEndian.Uint32(b[7:]) != number {
		return chunk{}, false
	}
	header := logHeader
	switch t := b[6]; {
	case t >= logFullType && t <= logLastType:
		c.begins = t <= logFirstType
	case t >= olderFullType && t <= olderLastType:
		header = olderLogHeader
		c.begins = t <= olderFullType+1
	default:
		return chunk{}, false
	}
	c.length = header + int(binary.LittleEndian.Uint16(b[4:]))
	if c.length > len(b) || chunkSum(b[6:c.length]) != binary.LittleEndian.Uint32(b) {
		return chunk{}, false
	}
	if header == logHeader {
		c.synced = binary.LittleEndian.Uint64(b[11:])
	}
	c.payload = b[header:c.length]
	return c, true
}

// logScan is the summary of the chunks of one log.
type logScan struct {
	number  uint64
	size    int64
	records int // that begin before end

	first, next uint64 // sequence numbers: of the first record, and behind the last; 0: not known

	end     int64 // where the first chunk that is not whole lies, or would lie
	flipped bool  // it is whole but for one bit, and none of its sectors was lost
	more    bool  // there are bytes behind it
	partial int64 // its bytes that may be there, by its header; else 0

	behind   int    // whole chunks behind end
	last     int64  // end of the last of these chunks
	promised uint64 // the largest sync offset in these chunks
	promises int    // how many sync offsets they have, each larger than the one before
}

// scanLogFile reads a log. It takes two blocks of memory for a log of any length.
func scanLogFile(fs vfs.FS, dir string, number uint64) (s logScan, err error) {
	f, err := fs.Open(fs.PathJoin(dir, logName(number)))
	if err != nil {
		return logScan{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s.number, s.end = number, -1
	block := make([]byte, logBlock)
	for {
		n, err := io.ReadFull(f, block)
		if n > 0 {
			s.block(block[:n])
			s.size += int64(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if s.end < 0 {
				s.end = s.size
			}
			return s, nil
		}
		if err != nil {
			return logScan{}, fmt.Errorf("read %s: %w", logName(number), err)
		}
	}
}

func logName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

// block reads the block that begins at s.size.
func (s *logScan) block(b []byte) {
	s.more = s.more || s.end >= 0 && !zero(b)
	for at := 0; at < len(b); {
		rest := b[at:]
		c, ok := logChunk(rest, uint32(s.number))
		switch {
		case ok && s.end < 0:
			s.whole(c)
		case ok:
			s.found(c, s.size+int64(at+c.length))
		case s.end >= 0: // search on, byte by byte
			at++
			continue
		case len(b) == logBlock && len(rest) < logHeader && zero(rest):
			return
		default:
			s.end = s.size + int64(at)
			s.ends(rest, at)
			at++
			continue
		}
		at += c.length
	}
}

// ends notes the first chunk that is not whole, at the beginning of rest.
func (s *logScan) ends(rest []byte, at int) {
	number := uint32(s.number)
	s.partial = partial(rest, number)
	if len(rest) >= logHeader {
		end := min(len(rest), logHeader+int(binary.LittleEndian.Uint16(rest[4:])))
		s.flipped = flippedBit(rest, number) && !hasLostSector(rest[:end], at)
		s.more = !zero(rest[end:])
	}
}

func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// whole counts a chunk before the end.
func (s *logScan) whole(c chunk) {
	if !c.begins {
		return
	}
	s.records++
	if len(c.payload) < batchHeader { // the rest of its header is in the next block
		s.next = 0
		return
	}
	sequence := binary.LittleEndian.Uint64(c.payload)
	if s.records == 1 {
		s.first = sequence
	}
	s.next = sequence + uint64(binary.LittleEndian.Uint32(c.payload[8:]))
}

// found counts a chunk behind the end.
func (s *logScan) found(c chunk, end int64) {
	if s.behind == 0 || c.synced > s.promised {
		s.promised = c.synced
		s.promises++
	}
	s.behind++
	s.last = end
}

// partial returns how many bytes of a chunk that is not whole may be there.
func partial(b []byte, number uint32) int64 {
	if len(b) < olderLogHeader || b[6] == 0 || b[6] > logLastType || binary.LittleEndian.Uint32(b[7:]) != number {
		return 0
	}
	return int64(min(len(b), logHeader+int(binary.LittleEndian.Uint16(b[4:]))))
}
