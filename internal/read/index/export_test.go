package index

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// ChunkEvents and BlockEvents are the sizes of the index.
const (
	ChunkEvents = chunkEvents
	BlockEvents = blockEvents
)

// CachesTail reports whether a tail is in memory.
func (x *Index) CachesTail(t id.Tenant) bool {
	_, cached := x.tails.Get(t)
	return cached
}

// Advance makes one step.
func (x *Index) Advance(ctx context.Context, t id.Tenant) (more bool, err error) {
	return x.follower.Step(ctx, t, "")
}

// MergeBits lowers the number of parts that are merged to 1<<n.
func (x *Index) MergeBits(n int) { x.merger.Bits = n }

// CompareAtMost lowers the number of records of acts that a page compares.
func (x *Index) CompareAtMost(n int) { x.maxActRecords = n }

// CountAtMost lowers the number of postings of long traces that a page counts.
func (x *Index) CountAtMost(n int) { x.maxCounted = n }

// ReadReceipt is readReceipt.
func ReadReceipt(payload []byte) []byte { return readReceipt(payload) }
