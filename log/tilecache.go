package log

import (
	"sync"
	"sync/atomic"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// cached is what is kept of a tile.
type cached interface {
	comparable
	Tile() tlog.Tile
	Bytes() int // of memory
}

// tileCache keeps decoded tiles within a bound of bytes. A tile never changes,
// but the last one of a level gets wider and is replaced then. When there is no
// room, tiles go that were not used since somebody last looked for room: so all
// of the bound is of use, also for leaves asked for at random.
type tileCache[T cached] struct{ shards [tileShards]tileShard[T] }

// tileShards keeps readers on several cores out of each other's way.
const tileShards = 16

type tileShard[T cached] struct {
	room int64 // in bytes

	mu    sync.RWMutex
	tiles map[tileKey]*keptTile[T]
	bytes int64
}

type keptTile[T cached] struct {
	tile   T
	recent atomic.Bool // used since the last look for room
}

type tileKey struct {
	tenant id.Tenant
	level  uint8
	index  uint64
}

func newTileCache[T cached](bytes int64) *tileCache[T] {
	c := &tileCache[T]{}
	for i := range c.shards {
		c.shards[i].room = bytes / tileShards
		c.shards[i].tiles = make(map[tileKey]*keptTile[T])
	}
	return c
}

// shard spreads the tiles of a ledger evenly.
func (c *tileCache[T]) shard(k tileKey) *tileShard[T] {
	return &c.shards[(uint64(k.tenant)+k.index+uint64(k.level))%tileShards]
}

// get returns a tile, or the zero value when it is not kept.
func (c *tileCache[T]) get(k tileKey) (tile T) {
	s := c.shard(k)
	s.mu.RLock()
	kept := s.tiles[k]
	s.mu.RUnlock()
	if kept == nil {
		return tile
	}
	if !kept.recent.Load() {
		kept.recent.Store(true)
	}
	return kept.tile
}

// hasRoom reports whether tile would be kept under k in nobody's place.
func (c *tileCache[T]) hasRoom(k tileKey, tile T) bool {
	s := c.shard(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bytes+tileBytes(tile) <= s.room
}

// held returns how many bytes are kept.
func (c *tileCache[T]) held() (bytes int64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		bytes += s.bytes
		s.mu.RUnlock()
	}
	return bytes
}

// put keeps a tile, unless a wider version is there or it is larger than all of
// the room.
func (c *tileCache[T]) put(k tileKey, tile T) {
	s := c.shard(k)
	if tileBytes(tile) > s.room {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.tiles[k]; before != nil {
		if before.tile.Tile().Width >= tile.Tile().Width {
			return
		}
		s.drop(k, before)
	}
	s.makeRoom(tileBytes(tile))
	s.tiles[k] = &keptTile[T]{tile: tile}
	s.bytes += tileBytes(tile)
}

func (s *tileShard[T]) makeRoom(bytes int64) {
	for s.bytes+bytes > s.room && len(s.tiles) > 0 {
		s.evict()
	}
}

// evict drops the first tile found that was not used lately. It looks at a few
// only, in the map's own order, which is another one each time.
func (s *tileShard[T]) evict() {
	looked := 0
	for k, kept := range s.tiles {
		if looked++; looked == evictionLook || !kept.recent.Swap(false) {
			s.drop(k, kept)
			return
		}
	}
}

func (s *tileShard[T]) drop(k tileKey, kept *keptTile[T]) {
	delete(s.tiles, k)
	s.bytes -= tileBytes(kept.tile)
}

// tileBytes is what a tile takes with its place in the map.
func tileBytes[T cached](tile T) int64 { return int64(tile.Bytes()) + 80 }
