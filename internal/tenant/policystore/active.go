package policystore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Active returns the policy that is active as of the config version of s or
// later; nil, nil when it is certain that none is. All errors are
// fault.Unavailable: then nothing may be allowed.
func (b *Rulebook) Active(ctx context.Context, s *log.State) (*policy.Compiled, error) {
	t, version := s.Identity().Tenant, s.ConfigVersion()
	if e := b.cache.get(t, version); e != nil {
		return e.compiled, nil
	}
	// Who asks at once waits for one that reads and compiles.
	read := func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
		return b.refresh(ctx, t, version)
	}
	select {
	case found := <-b.flight.DoChan(fmt.Sprintf("%d/%d", t, version), read):
		if found.Err != nil {
			return nil, found.Err
		}
		return found.Val.(*cacheEntry).compiled, nil
	case <-ctx.Done():
		return nil, unreadable("read active policy", ctx.Err())
	}
}

// readTime bounds a read that goes on when who asked for it is gone.
const readTime = 20 * time.Second

// refresh reads what is active and keeps it for version.
func (b *Rulebook) refresh(ctx context.Context, t id.Tenant, version uint64) (*cacheEntry, error) {
	e, err := b.readActive(ctx, t)
	if err != nil {
		return nil, err
	}
	e.version = version
	b.cache.put(t, e)
	return e, nil
}

func (b *Rulebook) readActive(ctx context.Context, t id.Tenant) (*cacheEntry, error) {
	active, err := b.stores.active.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	if active.Version == 0 {
		return &cacheEntry{bytes: entryBytes}, nil
	}
	if known := b.cache.last(t); known != nil && known.compiled != nil && known.compiled.Digest() == active.Value.Digest {
		return &cacheEntry{compiled: known.compiled, bytes: known.bytes}, nil // something else was changed
	}
	v, err := b.version(ctx, t, active.Value.PolicyID, active.Value.Version)
	if errors.Is(err, storage.ErrStale) { // versions that were active never go away
		return nil, unreadable("read active policy", fmt.Errorf("%w: %w", storage.ErrCorrupt, err))
	}
	if err != nil {
		return nil, err
	}
	document, err := v.Value.document()
	if err != nil {
		return nil, err
	}
	if document.Digest() != active.Value.Digest {
		return nil, unreadable("read active policy", fmt.Errorf("%w: not the document that was activated", storage.ErrCorrupt))
	}
	compiled, err := policy.Compile(document)
	if err != nil {
		return nil, unreadable("compile active policy", err)
	}
	return &cacheEntry{compiled: compiled, bytes: entryBytes + compiled.Weight()}, nil
}

// entryBytes is about what an entry weighs without a policy.
const entryBytes = 128

// activeCache keeps what Active found within a bound. An entry counts for the
// config version that it was read for and for no other. There are two
// generations: a hit moves an entry to the young one; when that is full, the old
// one is dropped.
type activeCache struct {
	mu         sync.RWMutex
	young, old map[id.Tenant]*cacheEntry
	bytes      int // of young
	perHalf    int
}

type cacheEntry struct {
	version  uint64
	compiled *policy.Compiled // nil: none is active
	bytes    int
}

func newActiveCache(bytes int) *activeCache {
	return &activeCache{young: make(map[id.Tenant]*cacheEntry), perHalf: bytes / 2}
}

// last returns what was found last, for whatever version, or nil.
func (c *activeCache) last(t id.Tenant) *cacheEntry {
	e, _ := c.look(t)
	return e
}

func (c *activeCache) look(t id.Tenant) (e *cacheEntry, young bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e, young = c.young[t]; !young {
		e = c.old[t]
	}
	return e, young
}

// get returns what was found for version, or nil.
func (c *activeCache) get(t id.Tenant, version uint64) *cacheEntry {
	e, young := c.look(t)
	if e == nil || e.version != version {
		return nil
	}
	if !young {
		c.put(t, e)
	}
	return e
}

// put keeps an entry, unless one of a later version is there.
func (c *activeCache) put(t id.Tenant, e *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.young[t]; was != nil {
		if was.version > e.version {
			return
		}
		c.bytes -= was.bytes
		delete(c.young, t)
	}
	if c.bytes+e.bytes > c.perHalf {
		c.old, c.young, c.bytes = c.young, make(map[id.Tenant]*cacheEntry), 0
	}
	c.young[t] = e
	c.bytes += e.bytes
}
