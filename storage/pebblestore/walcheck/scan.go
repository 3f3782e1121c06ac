package walcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log consists of blocks of chunks, like a manifest, with a longer header: checksum (4), length (2), type (1), number of
// the log (4), sync offset (8). A chunk of the older form has no sync offset. The file may be that of an older log, and
// may still contain chunks with that log's number. The sync offset of a chunk is a promise: when the writer emitted the
// chunk, it had synced at least that many bytes of this log.
const (
	logBlock       = Block
	logHeader      = 19
	olderLogHeader = 11

	olderFullType, olderLastType = 5, 8
	logFullType, logFirstType    = 9, 10
	logLastType                  = 12
	batchHeader                  = 12 // sequence number (8), count (4): the start of a record
)

// chunk is a whole chunk of a log.
type chunk struct {
	length  int    // including the header
	begins  bool   // it is the first chunk of a record
	synced  uint64 // its sync offset
	payload []byte
}

// logChunk parses the chunk that b begins with. ok reports whether it is a whole chunk of the given log.
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
	if c.length > len(b) || Sum(b[6:c.length]) != binary.LittleEndian.Uint32(b) {
		return chunk{}, false
	}
	if header == logHeader {
		c.synced = binary.LittleEndian.Uint64(b[11:])
	}
	c.payload = b[header:c.length]
	return c, true
}

// scan summarizes the chunks of one log.
type scan struct {
	number  uint64
	size    int64
	records int // that begin before end

	first, next uint64 // sequence numbers of the first record and after the last one; 0 if unknown

	end     int64 // offset of the first chunk that is not whole, or the end of the last whole one
	flipped bool  // that chunk is whole except for one bit, and none of its sectors was lost
	more    bool  // bytes follow that chunk
	partial int64 // bytes of that chunk that may have been written, according to its header; else 0

	behind   int    // whole chunks after end
	last     int64  // end of the last of these chunks
	promised uint64 // the largest sync offset in these chunks
	promises int    // number of sync offsets in them that are larger than all before
}

// readLog reads a log. It uses two blocks of memory for a log of any length.
func readLog(fs vfs.FS, dir string, number uint64) (s scan, err error) {
	f, err := fs.Open(fs.PathJoin(dir, logName(number)))
	if err != nil {
		return scan{}, err
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
			return scan{}, fmt.Errorf("read %s: %w", logName(number), err)
		}
	}
}

// logName returns the name of the log with the given number.
func logName(number uint64) string { return fmt.Sprintf("%06d.log", number) }

// block reads the block that begins at s.size.
func (s *scan) block(b []byte) {
	s.more = s.more || s.end >= 0 && !zero(b)
	for at := 0; at < len(b); {
		rest := b[at:]
		c, ok := logChunk(rest, uint32(s.number))
		switch {
		case ok && s.end < 0:
			s.addWhole(c)
		case ok:
			s.found(c, s.size+int64(at+c.length))
		case s.end >= 0: // search for the next whole chunk, byte by byte
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

// ends records the first chunk that is not whole, at the beginning of rest.
func (s *scan) ends(rest []byte, at int) {
	number := uint32(s.number)
	s.partial = partial(rest, number)
	if len(rest) >= logHeader {
		end := min(len(rest), logHeader+int(binary.LittleEndian.Uint16(rest[4:])))
		s.flipped = FlippedBit(rest, number) && !hasLostSector(rest[:end], at)
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

// addWhole counts a chunk before the end.
func (s *scan) addWhole(c chunk) {
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

// found counts a chunk after the end.
func (s *scan) found(c chunk, end int64) {
	if s.behind == 0 || c.synced > s.promised {
		s.promised = c.synced
		s.promises++
	}
	s.behind++
	s.last = end
}

// partial returns how many bytes of a chunk that is not whole may have been written.
func partial(b []byte, number uint32) int64 {
	if len(b) < olderLogHeader || b[6] == 0 || b[6] > logLastType || binary.LittleEndian.Uint32(b[7:]) != number {
		return 0
	}
	return int64(min(len(b), logHeader+int(binary.LittleEndian.Uint16(b[4:]))))
}

// isDamaged reports whether the first chunk that is not whole was once written and synced, so that it was not left by a
// crash. The package comment has the argument: three different sync offsets after the chunk prove that it was synced, and
// so does an offset beyond it. A chunk that is whole except for one bit was written; whole chunks must follow it, or
// nothing.
func (s scan) isDamaged() bool {
	const proof = 3
	flipped := s.flipped && (s.behind > 0 || !s.more)
	return flipped || s.promises >= proof || s.behind > 0 && s.promised > uint64(s.end)
}

// damage returns where a damaged log is damaged.
func (s scan) damage() string {
	text := fmt.Sprintf("%s is damaged at byte %d", logName(s.number), s.end)
	if s.behind > 0 {
		text += fmt.Sprintf(", and acknowledged events follow it, up to byte %d", s.last)
	}
	return text
}

// tail returns how many bytes after the end belong to this log.
func (s scan) tail() int64 {
	if s.behind > 0 {
		return s.last - s.end
	}
	return s.partial
}
