package log

import (
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// tileCache keeps decoded tiles within a bound. A tile never changes, but the
// last one of a level gets wider and is replaced then. The cache has two
// generations: a hit moves a tile to the young one; when that is full, the old
// one is dropped. So there is no list to keep.
type tileCache struct {
	mu         sync.RWMutex
	young, old map[tileKey]*tlog.Nodes
	perHalf    int // tiles in one generation
}

type tileKey struct {
	tenant id.Tenant
	level  uint8
	index  uint64
}

func newTileCache(bytes int64) *tileCache {
	perTile := int64(2*tlog.TileWidth*len(id.Hash{}) + 64)
	return &tileCache{young: make(map[tileKey]*tlog.Nodes), perHalf: int(max(1, bytes/perTile/2))}
}

func (c *tileCache) get(k tileKey) *tlog.Nodes {
	c.mu.RLock()
	nodes, young := c.young[k]
	if !young {
		nodes = c.old[k]
	}
	c.mu.RUnlock()
	if nodes != nil && !young {
		c.put(k, nodes)
	}
	return nodes
}

func (c *tileCache) put(k tileKey, nodes *tlog.Nodes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= c.perHalf {
		c.old, c.young = c.young, make(map[tileKey]*tlog.Nodes)
	}
	c.young[k] = nodes
}
