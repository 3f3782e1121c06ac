package log

import (
	"context"
	"math/rand/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/tlog"
)

// leafTileBytes is about the size of a full tile of level 0 with its place in the cache.
const leafTileBytes int64 = tlog.TileWidth*int64(len(id.Hash{})) + 144

// newLeafCache returns the cache of the leaf hashes of full tiles of level 0, with a limit in bytes, so that a proof
// takes them from memory and not from the engine. A tile is 32 times as large as a proof needs. When there is no
// space, a tile is read and kept for one proof in leafChance only, so that tiles that are read often get into the
// cache and the others cost little.
func newLeafCache(limit int64) *cache.Map[tileKey, []byte] {
	return cache.NewMap(cache.MapOptions[tileKey, []byte]{
		Limit: limit, Shards: tileShards, Hash: tileKey.hash,
		Weight: func(tileKey, []byte) int64 { return leafTileBytes },
	})
}

// leafChance is how many tiles are read for each one that evicts another.
const leafChance = 8

// readLeafHashes returns the leaf hashes [begin, end) of one full tile of a tree.
func (r *tileReader) readLeafHashes(ctx context.Context, in tileTree, index uint64, begin, end int) ([]byte, error) {
	const size = len(id.Hash{})
	k := tileKey{tenant: in.Tenant, index: index}
	if kept, found := r.leaves.Get(k); found {
		r.kept.Inc()
		return kept[begin*size : end*size : end*size], nil
	}
	r.read.Inc()
	full := tlog.Tile{Index: index, Width: tlog.TileWidth}
	if !r.leaves.HasRoom(k, leafTileBytes) && rand.Uint32N(leafChance) > 0 {
		full.Width = uint16(end)
		return r.readTileFrom(ctx, in, full, begin)
	}
	hashes, err := r.readTileFrom(ctx, in, full, 0)
	if err != nil {
		return nil, err
	}
	r.leaves.Put(k, hashes)
	return hashes[begin*size : end*size : end*size], nil
}
