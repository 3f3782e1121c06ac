package log

import (
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// tileCache keeps full tiles, which never change, within a bound. It has two
// generations: a hit moves a tile to the young one; when that is full, the old
// one is dropped. So a scan through many tiles can't push out the hot ones more
// than once, and there is no list to keep.
type tileCache struct {
	mu         sync.RWMutex
	young, old map[tileKey][]byte
	perHalf    int // tiles in one generation
}

type tileKey struct {
	tenant id.Tenant
	level  uint8
	index  uint64
}

func newTileCache(bytes int64) *tileCache {
	perTile := int64(tlog.TileWidth*len(id.Hash{}) + 64)
	return &tileCache{young: make(map[tileKey][]byte), perHalf: int(max(1, bytes/perTile/2))}
}

func (c *tileCache) get(k tileKey) []byte {
	c.mu.RLock()
	hashes, young := c.young[k]
	if !young {
		hashes = c.old[k]
	}
	c.mu.RUnlock()
	if hashes != nil && !young {
		c.put(k, hashes)
	}
	return hashes
}

func (c *tileCache) put(k tileKey, hashes []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.perHalf {
		c.old, c.young = c.young, make(map[tileKey][]byte)
	}
	c.young[k] = hashes
}
