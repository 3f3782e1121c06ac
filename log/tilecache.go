package log

import (
	"sync"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// tileCache keeps decoded tiles within a bound of bytes. A tile never changes,
// but the last one of a level gets wider and is replaced then. When there is no
// room, tiles go that were not used since somebody last looked for room: so all
// of the bound is of use, also for leaves asked for at random.
type tileCache struct{ shards [tileShards]tileShard }

// tileShards keeps readers on several cores out of each other's way.
const tileShards = 16

type tileShard struct {
	room int64 // in bytes

	mu    sync.RWMutex
	tiles map[tileKey]*keptTile
	bytes int64
}

type keptTile struct {
	nodes  *tlog.Nodes
	recent atomic.Bool // used since the last look for room
}

type tileKey struct {
	tenant id.Tenant
	level  uint8
	index  uint64
}

func newTileCache(bytes int64) *tileCache {
	c := &tileCache{}
	for i := range c.shards {
		c.shards[i].room = bytes / tileShards
		c.shards[i].tiles = make(map[tileKey]*keptTile)
	}
	return c
}

// shard spreads the tiles of a ledger evenly.
func (c *tileCache) shard(k tileKey) *tileShard {
	return &c.shards[(uint64(k.tenant)+k.index+uint64(k.level))%tileShards]
}

// get returns a tile, nil when it is not kept.
func (c *tileCache) get(k tileKey) *tlog.Nodes {
	s := c.shard(k)
	s.mu.RLock()
	kept := s.tiles[k]
	s.mu.RUnlock()
	if kept == nil {
		return nil
	}
	if !kept.recent.Load() {
		kept.recent.Store(true)
	}
	return kept.nodes
}

// put keeps a tile, unless a wider version is there or it is larger than all of
// the room.
func (c *tileCache) put(k tileKey, nodes *tlog.Nodes) {
	s := c.shard(k)
	if tileBytes(nodes) > s.room {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.tiles[k]; before != nil {
		if before.nodes.Tile().Width >= nodes.Tile().Width {
			return
		}
		s.drop(k, before)
	}
	s.makeRoom(tileBytes(nodes))
	s.tiles[k] = &keptTile{nodes: nodes}
	s.bytes += tileBytes(nodes)
}

func (s *tileShard) makeRoom(bytes int64) {
	for s.bytes+bytes > s.room && len(s.tiles) > 0 {
		s.evict()
	}
}

// evict drops the first tile found that was not used lately. It looks at a few
// only, in the map's own order, which is another one each time.
func (s *tileShard) evict() {
	looked := 0
	for k, kept := range s.tiles {
		if looked++; looked == evictionLook || !kept.recent.Swap(false) {
			s.drop(k, kept)
			return
		}
	}
}

func (s *tileShard) drop(k tileKey, kept *keptTile) {
	delete(s.tiles, k)
	s.bytes -= tileBytes(kept.nodes)
}

// tileBytes is what a tile takes with its place in the map.
func tileBytes(n *tlog.Nodes) int64 { return int64(n.Bytes()) + 80 }
