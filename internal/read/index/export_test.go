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

// Advance makes one step.
func (x *Index) Advance(ctx context.Context, t id.Tenant) (more bool, err error) {
	return x.follower.Step(ctx, t, "")
}

// CountAtMost lowers the number of postings of long traces that a page counts.
func (x *Index) CountAtMost(n int) { x.maxCounted = n }
