package walcheck

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log is blocks of chunks like a manifest (see Block), with a longer header: checksum (4), length (2), type
// (1), number of the log (4), sync offset (8). A chunk of the older form has no sync offset. A log file may have been
// another log before, and may still have chunks with that log's number. The sync offset of a chunk is a promise: when
// the writer wrote the chunk, it had synced at least that much of this log.
const (
	logBlock       = Block
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
	if c.length > len(b) || Sum(b[6:c.length]) != binary.LittleEndian.Uint32(b) {
		return chunk{}, false
	}
	if header == logHeader {
		c.synced = binary.LittleEndian.Uint64(b[11:])
	}
	c.payload = b[header:c.length]
	return c, true
}

// Scan is the summary of the chunks of one log.
type Scan struct {
	number  uint64
	size    int64
	Records int // that begin before End

	First, Next uint64 // sequence numbers: of the first record, and behind the last; 0: not known

	End     int64 // where the first chunk that is not whole lies, or would lie
	flipped bool  // it is whole but for one bit, and none of its sectors was lost
	more    bool  // there are bytes behind it
	partial int64 // its bytes that may be there, by its header; else 0

	Behind   int    // whole chunks behind End
	last     int64  // end of the last of these chunks
	promised uint64 // the largest sync offset in these chunks
	promises int    // how many sync offsets they have, each larger than the one before
}

// ReadFile reads a log. It takes two blocks of memory for a log of any length.
func ReadFile(fs vfs.FS, dir string, number uint64) (s Scan, err error) {
	f, err := fs.Open(fs.PathJoin(dir, Name(number)))
	if err != nil {
		return Scan{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s.number, s.End = number, -1
	block := make([]byte, logBlock)
	for {
		n, err := io.ReadFull(f, block)
		if n > 0 {
			s.block(block[:n])
			s.size += int64(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if s.End < 0 {
				s.End = s.size
			}
			return s, nil
		}
		if err != nil {
			return Scan{}, fmt.Errorf("read %s: %w", Name(number), err)
		}
	}
}

// Name returns the name of the log with that number.
func Name(number uint64) string { return fmt.Sprintf("%06d.log", number) }

// block reads the block that begins at s.size.
func (s *Scan) block(b []byte) {
	s.more = s.more || s.End >= 0 && !zero(b)
	for at := 0; at < len(b); {
		rest := b[at:]
		c, ok := logChunk(rest, uint32(s.number))
		switch {
		case ok && s.End < 0:
			s.addWhole(c)
		case ok:
			s.found(c, s.size+int64(at+c.length))
		case s.End >= 0: // search on, byte by byte
			at++
			continue
		case len(b) == logBlock && len(rest) < logHeader && zero(rest):
			return
		default:
			s.End = s.size + int64(at)
			s.ends(rest, at)
			at++
			continue
		}
		at += c.length
	}
}

// ends notes the first chunk that is not whole, at the beginning of rest.
func (s *Scan) ends(rest []byte, at int) {
	number := uint32(s.number)
	s.partial = partial(rest, number)
	if len(rest) >= logHeader {
		end := min(len(rest), logHeader+int(binary.LittleEndian.Uint16(rest[4:])))
		s.flipped = FlippedBit(rest, number) && !HasLostSector(rest[:end], at)
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
func (s *Scan) addWhole(c chunk) {
	if !c.begins {
		return
	}
	s.Records++
	if len(c.payload) < batchHeader { // the rest of its header is in the next block
		s.Next = 0
		return
	}
	sequence := binary.LittleEndian.Uint64(c.payload)
	if s.Records == 1 {
		s.First = sequence
	}
	s.Next = sequence + uint64(binary.LittleEndian.Uint32(c.payload[8:]))
}

// found counts a chunk behind the end.
func (s *Scan) found(c chunk, end int64) {
	if s.Behind == 0 || c.synced > s.promised {
		s.promised = c.synced
		s.promises++
	}
	s.Behind++
	s.last = end
}

// partial returns how many bytes of a chunk that is not whole may be there.
func partial(b []byte, number uint32) int64 {
	if len(b) < olderLogHeader || b[6] == 0 || b[6] > logLastType || binary.LittleEndian.Uint32(b[7:]) != number {
		return 0
	}
	return int64(min(len(b), logHeader+int(binary.LittleEndian.Uint16(b[4:]))))
}

// IsDamaged reports whether the first chunk that is not whole was written and synced once, so that a
// crash has not left it.
//
// A writer emits chunks one after another. Each chunk carries the sync offset of the moment when its
// emission began. The writer's flush loop runs in rounds. A round grabs all emitted chunks, writes
// them, syncs, and stores a sync offset. The stored offset never falls. So three stores of different
// offsets were made in the order of their offsets.
//
// Let c be the first whole chunk behind the damage, with the offset of store m. All chunks before c were emitted by
// then. The round that ends with store m+1 may have grabbed before that. The round that ends with store m+2 grabbed
// after store m+1, so after c began. That round has synced all chunks before c. A chunk with the offset of store m+2,
// or of a later store, shows that this sync is done. Different offsets are of different stores. So three different
// offsets, including the offset in c, prove that sync. A round that syncs and writes no partial block stores the
// previous offset again. Such rounds are not counted, so the count proves less and never too much.
//
// Two offsets are no proof, because c may have been emitted during a sync that does not cover the damage. If the
// machine then lost its power before the next sync, c can be on the disk while blocks before c are lost.
//
// An offset beyond the damage is a proof by itself, and the only proof that Pebble looks for.
//
// A chunk that is right except for one bit was written, also when damage follows.
func (s Scan) IsDamaged() bool {
	const proof = 3
	flipped := s.flipped && (s.Behind > 0 || !s.more)
	return flipped || s.promises >= proof || s.Behind > 0 && s.promised > uint64(s.End)
}

// Damage says where a damaged log is damaged.
func (s Scan) Damage() string {
	text := fmt.Sprintf("%s is damaged at byte %d", Name(s.number), s.End)
	if s.Behind > 0 {
		text += fmt.Sprintf(", and acknowledged events lie behind it, up to byte %d", s.last)
	}
	return text
}

// Tail returns how many bytes behind the end are of this log.
func (s Scan) Tail() int64 {
	if s.Behind > 0 {
		return s.last - s.End
	}
	return s.partial
}
