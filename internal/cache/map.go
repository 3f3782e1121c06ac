package cache

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// maxLook bounds the number of entries that are examined to evict one.
const maxLook = 16

// MapOptions configure NewMap. Limit is required.
type MapOptions[K comparable, V any] struct {
	// Limit bounds the total weight of the entries: bytes if Weight returns bytes, a number of entries if Weight is
	// nil.
	Limit int64

	// Weight returns the weight of an entry, at least 1. It is called once for each stored value. If nil, every entry
	// weighs 1.
	Weight func(K, V) int64

	// Shards is the number of separately locked parts, for maps that several processors read all the time. Each part
	// has an equal share of Limit. If zero, 1.
	Shards int

	// Hash chooses the shard of a key. If nil, a hash of the whole key is used.
	Hash func(K) uint64

	// Evictable reports whether an entry may be evicted; it can keep an entry that is in use, for example. If it
	// returns true, the entry is removed. It is called with the shard locked, so it must not call the map. If nil,
	// every entry may be evicted.
	Evictable func(K, V) bool
}

// Map is a bounded map. Its methods may be called concurrently. Get allocates nothing.
type Map[K comparable, V any] struct {
	options MapOptions[K, V]
	seed    maphash.Seed
	shards  []shard[K, V]
}

// shard is a part of a Map. Its entries form a ring in the order of insertion, with root between the newest and the
// oldest.
type shard[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]*entry[K, V]
	weight  int64
	root    entry[K, V]
	hand    *entry[K, V] // where the next search for an evictable entry starts
}

type entry[K comparable, V any] struct {
	key          K
	value        V
	weight       int64
	older, newer *entry[K, V]
	used         atomic.Bool // since the hand last passed
}

// NewMap returns an empty map.
func NewMap[K comparable, V any](o MapOptions[K, V]) *Map[K, V] {
	if o.Weight == nil {
		o.Weight = func(K, V) int64 { return 1 }
	}
	m := &Map[K, V]{options: o, seed: maphash.MakeSeed(), shards: make([]shard[K, V], max(1, o.Shards))}
	m.options.Limit = max(1, o.Limit/int64(len(m.shards)))
	for i := range m.shards {
		s := &m.shards[i]
		s.entries = make(map[K]*entry[K, V])
		s.root.older, s.root.newer, s.hand = &s.root, &s.root, &s.root
	}
	return m
}

func (m *Map[K, V]) shardFor(key K) *shard[K, V] {
	if len(m.shards) == 1 {
		return &m.shards[0]
	}
	var h uint64
	if m.options.Hash != nil {
		h = m.options.Hash(key)
	} else {
		h = maphash.Comparable(m.seed, key)
	}
	return &m.shards[h%uint64(len(m.shards))]
}

// Get returns the value of a key, and counts as a use of the entry.
func (m *Map[K, V]) Get(key K) (value V, found bool) {
	s := m.shardFor(key)
	s.mu.RLock()
	e := s.entries[key]
	if e == nil {
		s.mu.RUnlock()
		return value, false
	}
	value = e.value
	s.mu.RUnlock()
	if !e.used.Load() { // usually already set: then readers share the cache line
		e.used.Store(true)
	}
	return value, true
}

// Put stores a value, replacing any earlier one. A value heavier than the limit is not stored; the earlier one is
// removed.
func (m *Map[K, V]) Put(key K, value V) {
	m.Update(key, func(V, bool) (V, bool) { return value, true })
}

// Update calls change with the value of a key, or the zero value if there is none. It stores the returned value or, if
// keep is false, removes the entry. The shard is locked during the call, so change must not call the map.
func (m *Map[K, V]) Update(key K, change func(before V, found bool) (after V, keep bool)) {
	s := m.shardFor(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	var before V
	if e != nil {
		before = e.value
	}
	after, keep := change(before, e != nil)
	var weight int64
	if keep {
		weight = m.options.Weight(key, after)
		keep = weight <= m.options.Limit
	}
	switch {
	case !keep && e != nil:
		s.removeEntry(e)
	case keep && e != nil && weight == e.weight:
		e.value = after
	case keep:
		if e != nil {
			s.removeEntry(e)
		}
		m.makeRoom(s, weight)
		s.insertNewest(&entry[K, V]{key: key, value: after, weight: weight})
	}
}

// Delete removes the entry of a key, if there is one.
func (m *Map[K, V]) Delete(key K) {
	s := m.shardFor(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		s.removeEntry(e)
	}
}

// HasRoom reports whether an entry of the given weight could be added without evicting another one.
func (m *Map[K, V]) HasRoom(key K, weight int64) bool {
	s := m.shardFor(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.weight+weight <= m.options.Limit
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() (n int) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.RLock()
		n += len(s.entries)
		s.mu.RUnlock()
	}
	return n
}

// TotalWeight returns the total weight of all entries.
func (m *Map[K, V]) TotalWeight() (weight int64) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.RLock()
		weight += s.weight
		s.mu.RUnlock()
	}
	return weight
}

// makeRoom evicts entries until an entry of the given weight fits, or until none can be evicted.
func (m *Map[K, V]) makeRoom(s *shard[K, V], weight int64) {
	for s.weight+weight > m.options.Limit && len(s.entries) > 0 {
		if !s.evictOne(m.options.Evictable) {
			return
		}
	}
}

// evictOne evicts the first of the next maxLook entries that was not used since the hand last passed, or else the last
// of them. It reports whether an entry was evicted.
func (s *shard[K, V]) evictOne(evictable func(K, V) bool) bool {
	for look := 1; look <= maxLook; look++ {
		if s.hand == &s.root {
			s.hand = s.root.newer // the oldest: root closes the ring
		}
		e := s.hand
		s.hand = e.newer
		if e.used.Swap(false) && look < maxLook {
			continue
		}
		if evictable == nil || evictable(e.key, e.value) {
			s.removeEntry(e)
			return true
		}
	}
	return false
}

// insertNewest adds an entry at the newest end.
func (s *shard[K, V]) insertNewest(e *entry[K, V]) {
	e.older, e.newer = s.root.older, &s.root
	e.older.newer, s.root.older = e, e
	s.entries[e.key] = e
	s.weight += e.weight
}

func (s *shard[K, V]) removeEntry(e *entry[K, V]) {
	if s.hand == e {
		s.hand = e.newer
	}
	e.older.newer, e.newer.older = e.newer, e.older
	delete(s.entries, e.key)
	s.weight -= e.weight
}
