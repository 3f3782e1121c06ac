package log

import (
	"context"
	"math/rand/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/tlog"
)

// leafTileBytes is about what a full tile of level 0 takes with its place in the cache.
const leafTileBytes int64 = tlog.TileWidth*int64(len(id.Hash{})) + 144

// newLeafCache returns the cache of full tiles of level 0, by their leaf hashes: so a
// proof takes them from memory and not from the engine. A tile is 32 times as much as a proof needs of it: when there is no room, it
// is read and kept for one proof in leafChance alone, so that what is asked for again
// and again gets there and what is not costs little.
func newLeafCache(limit int64) *cache.Map[tileKey, []byte] {
	return cache.NewMap(cache.MapOptions[tileKey, []byte]{
		Limit: limit, Shards: tileShards, Hash: tileKey.hash, Weight: func(tileKey, []byte) int64 { return leafTileBytes },
	})
}

// leafChance is one in how many tiles is kept in the place of another one.
const leafChance = 8

// leaves returns the leaf hashes [begin, end) of one full tile of s.
func (l *Ledgers) leaves(ctx context.Context, s *State, index uint64, begin, end int) ([]byte, error) {
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
		return l.part(ctx, s, full, begin)
	}
	hashes, err := l.part(ctx, s, full, 0)
	if err != nil {
		return nil, err
	}
	l.leafCache.Put(k, hashes)
	return hashes[begin*size : end*size : end*size], nil
}

// countLeaves counts where somebody looks: who checks a store by itself has no metrics.
func (l *Ledgers) countLeaves(count func(*leafMetrics)) {
	if l.metrics != nil {
		count(&l.metrics.leaves)
	}
}
