package agent

import (
	"hash/maphash"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// keyCache keeps decoded keys within a bound. An entry counts for the config
// version that it was read for and for no other. Each shard has two generations:
// a hit moves a key to the young one; when that is full, the old one is dropped.
type keyCache struct {
	seed    maphash.Seed
	perHalf int // keys in one generation of a shard
	shards  [cacheShards]cacheShard
}

const cacheShards = 16

type cacheShard struct {
	mu         sync.RWMutex
	young, old map[cacheName]*cacheEntry
}

type cacheName struct {
	tenant id.Tenant
	agent  id.Agent
	key    id.Key
}

type cacheEntry struct {
	version uint64
	key     Key
}

func newKeyCache(keys int) *keyCache {
	c := &keyCache{seed: maphash.MakeSeed(), perHalf: max(1, keys/cacheShards/2)}
	for i := range c.shards {
		c.shards[i].young = make(map[cacheName]*cacheEntry)
	}
	return c
}

func (c *keyCache) shard(n cacheName) *cacheShard {
	return &c.shards[maphash.String(c.seed, string(n.key))%cacheShards]
}

// get returns the entry of a name that was read for version, or nil.
func (c *keyCache) get(n cacheName, version uint64) *cacheEntry {
	s := c.shard(n)
	s.mu.RLock()
	e, young := s.young[n]
	if !young {
		e = s.old[n]
	}
	s.mu.RUnlock()
	if e == nil || e.version != version {
		return nil
	}
	if !young {
		c.put(n.tenant, e)
	}
	return e
}

// put keeps an entry, unless one of a later version is there. What is kept are
// the entry's own strings: the caller's may be parts of a whole request.
func (c *keyCache) put(t id.Tenant, e *cacheEntry) {
	n := cacheName{tenant: t, agent: e.key.Agent, key: e.key.ID}
	s := c.shard(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.young[n]; was != nil && was.version > e.version {
		return
	}
	if len(s.young) >= c.perHalf {
		s.old, s.young = s.young, make(map[cacheName]*cacheEntry)
	}
	s.young[n] = e
}
