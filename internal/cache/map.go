package cache

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// maxLook is how many entries are looked at to find one that may go.
const maxLook = 16

// MapOptions configure NewMap. Limit is required.
type MapOptions[K comparable, V any] struct {
	// Limit is for the weight of all entries together: bytes where Weight returns bytes,
	// a number of entries where Weight is nil.
	Limit int64

	// Weight returns the weight of an entry, at least 1. It is called once for each
	// stored value. nil: each entry weighs 1.
	Weight func(K, V) int64

	// Shards spreads the entries over so many locks, for maps that several processors
	// read all the time. Each shard has its part of Limit. 0: one.
	Shards int

	// Hash chooses the shard of a key. nil: a hash over all of the key.
	Hash func(K) uint64

	// Evictable is asked about an entry that has to go to make room, and may refuse: an
	// entry in use, for example. It is called with the shard locked, so it MUST NOT call
	// the map. After true the entry is gone. nil: every entry may go.
	Evictable func(K, V) bool
}

// Map is a map with a bound. Its methods may be called concurrently. Get allocates
// nothing.
type Map[K comparable, V any] struct {
	options MapOptions[K, V]
	seed    maphash.Seed
	shards  []shard[K, V]
}

// shard is a part of a Map. Its entries are in a ring in the order in which they came,
// with root between the newest and the oldest one.
type shard[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]*entry[K, V]
	weight  int64
	root    entry[K, V]
	hand    *entry[K, V] // where the search for an entry that may go continues
}

type entry[K comparable, V any] struct {
	key          K
	value        V
	weight       int64
	older, newer *entry[K, V]
	used         atomic.Bool // since the hand passed
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

func (m *Map[K, V]) shardOf(key K) *shard[K, V] {
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
	s := m.shardOf(key)
	s.mu.RLock()
	e := s.entries[key]
	if e == nil {
		s.mu.RUnlock()
		return value, false
	}
	value = e.value
	s.mu.RUnlock()
	if !e.used.Load() { // mostly it is set: readers share the line of memory then
		e.used.Store(true)
	}
	return value, true
}

// Put stores a value, in place of the one before. A value that is heavier than the
// limit is not stored.
func (m *Map[K, V]) Put(key K, value V) {
	m.Update(key, func(V, bool) (V, bool) { return value, true })
}

// Update calls change with the value of a key, the zero value if there is none, and
// stores the returned value, or with keep false removes the entry. No other call for the
// key happens in between. change MUST NOT call the map.
func (m *Map[K, V]) Update(key K, change func(before V, found bool) (after V, keep bool)) {
	s := m.shardOf(key)
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

// Delete removes an entry, if there is one.
func (m *Map[K, V]) Delete(key K) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[key]; e != nil {
		s.removeEntry(e)
	}
}

// HasRoom reports whether an entry of a weight could be added without another one
// going.
func (m *Map[K, V]) HasRoom(key K, weight int64) bool {
	s := m.shardOf(key)
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

// TotalWeight returns the weight of all entries together.
func (m *Map[K, V]) TotalWeight() (weight int64) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.RLock()
		weight += s.weight
		s.mu.RUnlock()
	}
	return weight
}

// makeRoom evicts entries until one of a weight fits, or until none may go.
func (m *Map[K, V]) makeRoom(s *shard[K, V], weight int64) {
	for s.weight+weight > m.options.Limit && len(s.entries) > 0 {
		if !s.evictOne(m.options.Evictable) {
			return
		}
	}
}

// evictOne removes one entry: the oldest one that was not used since the hand passed,
// among the few that the hand meets next, or else the last of those. It reports false
// when none may go.
func (s *shard[K, V]) evictOne(evictable func(K, V) bool) bool {
	for look := 1; look <= maxLook; look++ {
		if s.hand == &s.root {
			s.hand = s.root.newer // the oldest: root is a ring
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

// insertNewest adds an entry as the newest one.
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
