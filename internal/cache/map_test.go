package cache_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/cache"
)

// Under random use, the weight never exceeds the limit, and is the sum of the entries' weights.
func TestMapKeepsItsBound(t *testing.T) {
	for _, shards := range []int{0, 1, 4} {
		m := cache.NewMap(cache.MapOptions[int, int64]{Limit: 400, Shards: shards, Weight: func(_ int, weight int64) int64 { return weight }})
		random := rand.New(rand.NewPCG(1, uint64(shards)))
		for range 20_000 {
			key := random.IntN(60)
			switch random.IntN(4) {
			case 0:
				m.Get(key)
			case 1:
				m.Delete(key)
			default:
				m.Put(key, 1+random.Int64N(40))
			}
			if m.TotalWeight() > 400 {
				t.Fatalf("%d shards: weight %d, want at most 400", shards, m.TotalWeight())
			}
		}
		var weight, entries int64
		for key := range 60 {
			if value, found := m.Get(key); found {
				weight, entries = weight+value, entries+1
			}
		}
		if weight != m.TotalWeight() || entries != int64(m.Len()) {
			t.Errorf("%d shards: weight %d of %d entries, counted %d of %d", shards, m.TotalWeight(), m.Len(), weight, entries)
		}
	}
}

func TestMapValues(t *testing.T) {
	m := cache.NewMap(cache.MapOptions[string, int64]{Limit: 10, Weight: func(_ string, weight int64) int64 { return weight }})
	if _, found := m.Get("a"); found {
		t.Error("an empty map has a value")
	}
	m.Put("a", 3)
	m.Put("a", 4)
	m.Put("b", 4)
	if got, found := m.Get("a"); got != 4 || !found || m.Len() != 2 || m.TotalWeight() != 8 {
		t.Errorf("got %d, %v; %d entries of weight %d", got, found, m.Len(), m.TotalWeight())
	}
	if !m.HasRoom("c", 2) || m.HasRoom("c", 3) {
		t.Error("wrong account of the room left")
	}
	m.Put("a", 11)
	if _, found := m.Get("a"); found || m.Len() != 1 {
		t.Error("a value above the limit is stored, or left the older one in place")
	}
	m.Update("b", func(before int64, found bool) (int64, bool) { return before + 1, found })
	m.Update("c", func(before int64, found bool) (int64, bool) { return before + 1, found })
	if got, _ := m.Get("b"); got != 5 || m.Len() != 1 {
		t.Errorf("after updates: got %d, %d entries", got, m.Len())
	}
	m.Delete("b")
	m.Delete("b")
	if m.Len() != 0 || m.TotalWeight() != 0 {
		t.Errorf("got %d entries of weight %d, want none", m.Len(), m.TotalWeight())
	}
}

// Keys that are used repeatedly stay while many others are used once.
func TestMapKeepsUsedEntries(t *testing.T) {
	const often, limit = 50, 100
	m := cache.NewMap(cache.MapOptions[int, int]{Limit: limit})
	misses := 0
	for once := often; once < 10_000; once++ {
		m.Put(once, once)
		if _, found := m.Get(once % often); !found {
			m.Put(once%often, 0)
			misses++
		}
	}
	if misses > 2*often {
		t.Errorf("%d entries that are in use had to be put again", misses-often)
	}
	if m.Len() != limit {
		t.Errorf("got %d entries, want %d", m.Len(), limit)
	}
}

// An entry that Evictable keeps stays even if the map exceeds its limit. It is evicted once Evictable allows it.
func TestMapEvictable(t *testing.T) {
	pinned := func(key int) bool { return key < 20 }
	m := cache.NewMap(cache.MapOptions[int, int]{Limit: 10, Evictable: func(key, _ int) bool { return !pinned(key) }})
	for key := range 200 {
		m.Put(key, key)
		for held := range min(key, 20) {
			if _, found := m.Get(held); !found {
				t.Fatalf("entry %d went after %d", held, key)
			}
		}
	}
	pinned = func(int) bool { return false }
	m.Put(1000, 0)
	if m.Len() > 10 {
		t.Errorf("got %d entries, want 10", m.Len())
	}
}

func TestMapConcurrently(t *testing.T) {
	m := cache.NewMap(cache.MapOptions[int, *int]{Limit: 64, Shards: 4})
	var group sync.WaitGroup
	for seed := range uint64(4) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 5000 {
				key := random.IntN(200)
				if value, found := m.Get(key); found && *value != key {
					t.Errorf("key %d has the value of %d", key, *value)
				}
				m.Put(key, &key)
				m.Delete(random.IntN(200))
			}
		})
	}
	group.Wait()
}

type longKey struct {
	tenant uint64
	name   string
}

func TestMapGetAllocatesNothing(t *testing.T) {
	for _, shards := range []int{1, 16} {
		m := cache.NewMap(cache.MapOptions[longKey, [4]int]{Limit: 100, Shards: shards})
		key := longKey{1, "agent_0123456789"}
		m.Put(key, [4]int{})
		if n := testing.AllocsPerRun(100, func() { m.Get(key) }); n != 0 {
			t.Errorf("%d shards: %v allocations, want none", shards, n)
		}
	}
}

func BenchmarkMapGet(b *testing.B) {
	for _, shards := range []int{1, 16} {
		b.Run(map[int]string{1: "one shard", 16: "16 shards"}[shards], func(b *testing.B) {
			m := cache.NewMap(cache.MapOptions[longKey, *int]{Limit: 100, Shards: shards})
			m.Put(longKey{1, "agent_0123456789"}, new(int))
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					m.Get(longKey{1, "agent_0123456789"})
				}
			})
		})
	}
}

func BenchmarkMapPutFull(b *testing.B) {
	m := cache.NewMap(cache.MapOptions[uint64, *int]{Limit: 1 << 16})
	b.ReportAllocs()
	for i := range uint64(b.N) {
		m.Put(i, nil)
	}
}
