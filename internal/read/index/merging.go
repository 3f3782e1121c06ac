package index

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// The kinds of the records. They are derived (storage.Kind.Derived).
const (
	kindSingles storage.Kind = "derived/index_singles" // level 0: generation/bucket/block
	kindMerged  storage.Kind = "derived/index_merged"  // generation/level/bucket/part
)

// The usual numbers of bits.
const (
	mergeBits       = 4  // of the number of parts that become one
	mergeSingleBits = 10 // of the number of buckets at level 0
	sectionBits     = 16 // of the number of blocks that a part has at most: 4,294,967,296 events
	bucketsAtOnce   = 32 // that one step merges, about 1,000 records
)

// mergeStore has the records.
type mergeStore interface {
	Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error)
}

// mergeState says how far a generation of an index is merged. The zero value is nothing.
type mergeState struct {
	Parts  []uint64 `json:"parts,omitempty"` // that are merged, by level from 1 on
	Level  int      `json:"level,omitzero"`  // of the part that is being merged; 0: none is
	Bucket uint64   `json:"bucket,omitzero"` // the first one of the level below that is not merged yet
}

// partsOf returns how many parts of a level are there.
func (s *mergeState) partsOf(level int) uint64 {
	if level > len(s.Parts) {
		return 0
	}
	return s.Parts[level-1]
}

// endPart notes that a part is merged.
func (s *mergeState) endPart(level int) {
	parts := make([]uint64, max(level, len(s.Parts))) // a copy of s keeps its own
	copy(parts, s.Parts)
	parts[level-1]++
	s.Parts = parts
	s.Level, s.Bucket = 0, 0
}

// merger merges postings and reads merged ones. Its methods may be called concurrently, but Step of one generation by
// one goroutine at a time.
type merger struct {
	Store mergeStore
	Bits  int // Bits; tests lower it
}

// DueLevel returns the level whose next part can be merged when so many blocks are whole and stored, 0 for none.
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

// Step merges some buckets of the part that is due, and returns the changes and the state that they lead to. There are
// no changes when nothing is due. Errors are those of the store, and storage.ErrCorrupt.
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

// keys are the keys of a bucket's records of one level.
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

// mergeBucket returns the changes that merge a bucket for a part of the next level: its records go, and those of the
// buckets that it becomes there come.
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

// mergeTerm is a trace or a hash in one generation of an index that has so many whole blocks.
type mergeTerm struct {
	Generation  uint64
	Bucket      uint16 // at level 0
	Fingerprint uint32
	Blocks      uint64
}

// Visit calls visit with the entries of a term's bucket for each block of a window [begin, end) that is merged. It
// looks at one level more than Blocks can have, because a part may be merged while the caller reads: with 15 blocks,
// level 1 may have a part once the next block is whole.
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

// visitBlocks calls visit with the sections of a merged record that are of blocks of a window.
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
