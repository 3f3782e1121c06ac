package log

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/tlog"
)

// tileKey names a tile of a ledger.
type tileKey struct {
	tenant id.Tenant
	level  uint8
	index  uint64
}

// hash spreads the tiles of a ledger evenly over the shards.
func (k tileKey) hash() uint64 { return uint64(k.tenant) + k.index + uint64(k.level) }

const (
	tileShards   = 16 // so that readers on several processors do not contend
	tileOverhead = 80 // about the bytes of a tile beside its nodes
)

// newTileCache returns the cache of decoded tiles, with a limit in bytes. A tile never
// changes, except that the last one of a level gets wider and is replaced then.
func newTileCache(limit int64) *cache.Map[tileKey, *tlog.Nodes] {
	return cache.NewMap(cache.MapOptions[tileKey, *tlog.Nodes]{
		Limit: limit, Shards: tileShards, Hash: tileKey.hash,
		Weight: func(_ tileKey, n *tlog.Nodes) int64 { return int64(n.Bytes()) + tileOverhead },
	})
}

// keepTile stores a tile, unless a wider version is there.
func keepTile(tiles *cache.Map[tileKey, *tlog.Nodes], k tileKey, made *tlog.Nodes) {
	tiles.Update(k, func(before *tlog.Nodes, found bool) (*tlog.Nodes, bool) {
		if found && before.Tile().Width >= made.Tile().Width {
			return before, true
		}
		return made, true
	})
}
