package index

import (
	"fmt"
	"strconv"

	"github.com/agentledger/agentledger/storage"
)

// recordKey returns the key of a bucket's postings of a block, or of a group's postings of a chunk.
func recordKey(generation uint64, bucket uint16, part uint64) string {
	return fmt.Sprintf("%08x/%03x/%08x", generation, bucket, part)
}

// errKey returns the error for a malformed key.
func errKey() error { return fmt.Errorf("postings: key: %w", storage.ErrCorrupt) }

// partOf returns the block, chunk or part at the end of a key.
func partOf(key string) (uint64, error) {
	if len(key) < 8 {
		return 0, errKey()
	}
	part, err := strconv.ParseUint(key[len(key)-8:], 16, 32)
	if err != nil {
		return 0, errKey()
	}
	return part, nil
}

// columnsKey returns the key of the columns of a chunk.
func columnsKey(generation, chunk uint64) string { return fmt.Sprintf("%08x/%010x", generation, chunk) }

// generationPrefix returns the prefix of all keys of a generation.
func generationPrefix(generation uint64) string { return fmt.Sprintf("%08x/", generation) }
