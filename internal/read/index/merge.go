package index

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Kinds of the merged records, and of the records that are merged. They are derived (storage.Kind.Derived).
const (
	kindSingles storage.Kind = "derived/index_singles" // level 0: generation/bucket/block
	kindMerged  storage.Kind = "derived/index_merged"  // generation/level/bucket/part
)

// Parameters of merging, as numbers of bits except for bucketsAtOnce.
const (
	mergeBits       = 4  // number of parts that are merged into one
	mergeSingleBits = 10 // number of buckets at level 0
	sectionBits     = 16 // maximum number of blocks of a part: 4,294,967,296 events
	bucketsAtOnce   = 32 // buckets that one step merges, about 1,000 records
)

// mergeStore reads records.
type mergeStore interface {
	Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error)
}

// mergeState is the progress of merging a generation of an index. If zero, nothing has been merged.
type mergeState struct {
	Parts  []uint64 `json:"parts,omitempty"` // number of merged parts of each level, from level 1
	Level  int      `json:"level,omitzero"`  // of the part that is being merged, or 0
	Bucket uint64   `json:"bucket,omitzero"` // first bucket of the level below that is not merged yet
}

// partsOf returns the number of merged parts of a level.
func (s *mergeState) partsOf(level int) uint64 {
	if level > len(s.Parts) {
		return 0
	}
	return s.Parts[level-1]
}

// endPart records that a part has been merged.
func (s *mergeState) endPart(level int) {
	parts := make([]uint64, max(level, len(s.Parts))) // copies of s must not change
	copy(parts, s.Parts)
	parts[level-1]++
	s.Parts = parts
	s.Level, s.Bucket = 0, 0
}

// merger merges the postings of traces and hashes, and reads merged ones. Without it, finding one event would require
// reading a record of the event's bucket for every block of the ledger.
//
// Sixteen parts of a level are merged into one part of the next level, and each bucket is split into sixteen, so records
// keep their size. The parts of level 0 are blocks. A term is looked up in fewer than sixteen records of each level, and
// the number of levels grows with the logarithm of the ledger. A record above level 0 has one section for each block of
// its part, numbered within the part.
//
//   - A bucket is merged by one write, which deletes its records and writes the records that replace them.
//   - An entry is at one level only, and moves only to higher levels. So a reader that starts at the lowest level cannot
//     miss it.
//
// The methods may be called concurrently, but Step for one generation must be called by one goroutine at a time.
type merger struct {
	Store mergeStore
	Bits  int // mergeBits; less in tests
}

// DueLevel returns the level whose next part can be merged if the given number of blocks is complete and stored, or 0.
func (m merger) DueLevel(s mergeState, blocks uint64) int {
	if s.Level > 0 {
		return s.Level
	}
	below := blocks
	for level := 1; level*m.Bits <= sectionBits; level++ {
		parts := s.partsOf(level)
		if below>>m.Bits > parts {
			return level
		}
		below = parts
	}
	return 0
}

// Step merges some buckets of the part that is due. It returns the changes to write and the state after them. If nothing
// is due, there are no changes. It returns errors of the store and storage.ErrCorrupt.
func (m merger) Step(ctx context.Context, t id.Tenant, generation uint64, s mergeState, blocks uint64) (
	changes []storage.Change, next mergeState, err error) {
	level := m.DueLevel(s, blocks)
	if level == 0 {
		return nil, s, nil
	}
	part, all := s.partsOf(level), uint64(1)<<(mergeSingleBits+(level-1)*m.Bits)
	end := min(s.Bucket+bucketsAtOnce, all)
	for bucket := s.Bucket; bucket < end; bucket++ {
		some, err := m.mergeBucket(ctx, t, keys{generation, level - 1, bucket}, part)
		if err != nil {
			return nil, s, fmt.Errorf("merge postings: %w", err)
		}
		changes = append(changes, some...)
	}
	if s.Level, s.Bucket = level, end; end == all {
		s.endPart(level)
	}
	return changes, s, nil
}

// keys identifies the records of a bucket at one level.
type keys struct {
	generation uint64
	level      int
	bucket     uint64
}

func (k keys) kind() storage.Kind {
	if k.level == 0 {
		return kindSingles
	}
	return kindMerged
}

func (k keys) key(part uint64) string {
	if k.level == 0 {
		return recordKey(k.generation, uint16(k.bucket), part)
	}
	return fmt.Sprintf("%08x/%x/%08x/%08x", k.generation, k.level, k.bucket, part)
}

// scanParts returns the records of the parts [begin, end).
func (m merger) scanParts(ctx context.Context, t id.Tenant, k keys, begin, end uint64) ([]storage.Record, error) {
	return m.Store.Scan(ctx, t, k.kind(), k.key(begin), k.key(end), int(end-begin))
}

// mergeBucket returns the changes that merge a bucket into a part of the next level: they delete the bucket's records and
// write the records of the buckets that it is split into.
func (m merger) mergeBucket(ctx context.Context, t id.Tenant, from keys, part uint64) ([]storage.Change, error) {
	var changes []storage.Change
	first := part << m.Bits
	found, err := m.scanParts(ctx, t, from, first, first+1<<m.Bits)
	if err != nil {
		return nil, err
	}
	s := splitter{level: from.level + 1, bits: m.Bits, out: make([][]byte, 1<<m.Bits)}
	for _, r := range found {
		below, err := partOf(r.Key)
		if err == nil {
			err = s.addRecord(below-first, r.Value)
		}
		if err != nil {
			return nil, err
		}
		changes = append(changes, storage.Change{Kind: from.kind(), Key: r.Key, If: storage.AnyVersion})
	}
	for i, record := range s.out {
		if to := (keys{from.generation, from.level + 1, from.bucket<<m.Bits | uint64(i)}); record != nil {
			changes = append(changes, storage.Change{Kind: kindMerged, Key: to.key(part), Value: record,
				If: storage.AnyVersion})
		}
	}
	return changes, nil
}

// mergeTerm is a trace or a hash in one generation of an index.
type mergeTerm struct {
	Generation  uint64
	Bucket      uint16 // at level 0
	Fingerprint uint32
	Blocks      uint64 // complete blocks of the generation
}

// Visit calls visit with the entries of a term's bucket for each merged block of a window [begin, end). It reads one level
// more than Blocks can have, because a part may be merged while the caller reads: with 15 blocks, level 1 may have a part
// as soon as the next block is complete.
func (m merger) Visit(ctx context.Context, tenant id.Tenant, t mergeTerm, window [2]uint64,
	visit func(block uint64, entries []byte) error) error {
	for level := 1; level*m.Bits <= sectionBits && t.Blocks>>((level-1)*m.Bits) > 0; level++ {
		shift := level * m.Bits
		k := keys{t.Generation, level, uint64(t.Bucket)<<shift | uint64(t.Fingerprint>>(32-shift))}
		found, err := m.scanParts(ctx, tenant, k, window[0]>>shift, (window[1]-1)>>shift+1)
		if err != nil {
			return fmt.Errorf("read merged postings: %w", err)
		}
		for _, r := range found {
			if err := visitBlocks(r, shift, window, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitBlocks calls visit with the sections of a merged record for the blocks of a window.
func visitBlocks(r storage.Record, shift int, window [2]uint64,
	visit func(block uint64, entries []byte) error) error {
	part, err := partOf(r.Key)
	for record := r.Value; len(record) > 0 && err == nil; {
		var section uint16
		var entries []byte
		if section, entries, record, err = cutSection(record); err != nil {
			break
		}
		if block := part<<shift | uint64(section); block >= window[0] && block < window[1] {
			err = visit(block, entries)
		}
	}
	return err
}
