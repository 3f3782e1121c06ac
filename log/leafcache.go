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
		Limit: limit, Shards: tileShards, Hash: tileKey.hash, Weight: func(tileKey, []byte) int64 { return leafTileBytes },
	})
}

// leafChance is how many tiles are read for each one that evicts another.
const leafChance = 8

// readLeafHashes returns the leaf hashes [begin, end) of one full tile of s.
func (l *Ledgers) readLeafHashes(ctx context.Context, s *State, index uint64, begin, end int) ([]byte, error) {
	const size = len(id.Hash{})
	k := tileKey{tenant: s.identity.Tenant, index: index}
	if kept, found := l.leafCache.Get(k); found {
		l.countLeaves(func(m *leafMetrics) { m.kept.Inc() })
		return kept[begin*size : end*size : end*size], nil
	}
	l.countLeaves(func(m *leafMetrics) { m.read.Inc() })
	full := tlog.Tile{Index: index, Width: tlog.TileWidth}
	if !l.leafCache.HasRoom(k, leafTileBytes) && rand.Uint32N(leafChance) > 0 {
		full.Width = uint16(end)
		return l.readTileFrom(ctx, s, full, begin)
	}
	hashes, err := l.readTileFrom(ctx, s, full, 0)
	if err != nil {
		return nil, err
	}
	l.leafCache.Put(k, hashes)
	return hashes[begin*size : end*size : end*size], nil
}

// countLeaves counts a read by its source. A check of a store has no metrics.
func (l *Ledgers) countLeaves(count func(*leafMetrics)) {
	if l.metrics != nil {
		count(&l.metrics.leaves)
	}
}
