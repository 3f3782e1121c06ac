package postings

import (
	"fmt"
	"strconv"

	"github.com/agentledger/agentledger/storage"
)

// RecordKey is the key of a bucket's postings of a block, or of a group's postings of a chunk.
func RecordKey(generation uint64, bucket uint16, part uint64) string {
	return fmt.Sprintf("%08x/%03x/%08x", generation, bucket, part)
}

// ErrKey returns the error of a key that is none of a record.
func ErrKey() error { return fmt.Errorf("postings: key: %w", storage.ErrCorrupt) }

// PartOf reads the block, chunk or part at the end of a key.
func PartOf(key string) (uint64, error) {
	if len(key) < 8 {
		return 0, ErrKey()
	}
	part, err := strconv.ParseUint(key[len(key)-8:], 16, 32)
	if err != nil {
		return 0, ErrKey()
	}
	return part, nil
}

// ColumnsKey is the key of the columns of a chunk.
func ColumnsKey(generation, chunk uint64) string { return fmt.Sprintf("%08x/%010x", generation, chunk) }

// GenerationPrefix begins all keys of a generation.
func GenerationPrefix(generation uint64) string { return fmt.Sprintf("%08x/", generation) }
