package index

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// ChunkEvents is chunkEvents.
const ChunkEvents = chunkEvents

// Advance is advance.
func (x *Index) Advance(ctx context.Context, t id.Tenant) (more bool, err error) {
	return x.advance(ctx, t)
}
