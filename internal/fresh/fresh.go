// Package fresh remembers what was read a moment ago, for values that many
// requests need and that may be a little old but never older than that.
//
// What always holds:
//
//   - A value was read at most MaxAge before it is returned, counted from the
//     beginning of the read.
//   - What was dropped is read again by whoever asks after Drop returned.
//   - One key is read by one caller at a time; the others wait for that.
//   - Errors are not remembered, and the number of values has a bound.
package fresh

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Forever as MaxAge is for values that never change.
const Forever = time.Duration(math.MaxInt64)

// evictionLook is how many values are looked at to find an old one.
const evictionLook = 16

// errUnfinished is what waiters get when the read they wait for panicked.
var errUnfinished = errors.New("read did not end")

// Cache is a bounded map of values that are read when needed. Its methods may
// be called concurrently.
type Cache[K comparable, V any] struct {
	maxAge time.Duration
	limit  int
	clock  func() time.Time

	mu      sync.RWMutex
	entries map[K]*entry[V]
}

type entry[V any] struct {
	began time.Time
	ready chan struct{} // closed when value and err are set
	value V
	err   error
}

// New returns a cache of at most limit values.
func New[K comparable, V any](maxAge time.Duration, limit int, clock func() time.Time) *Cache[K, V] {
	return &Cache[K, V]{maxAge: maxAge, limit: limit, clock: clock, entries: make(map[K]*entry[V])}
}

// Get returns the value of key, reading it with load when none is fresh. load
// does not end with ctx, since others may wait for it.
func (c *Cache[K, V]) Get(ctx context.Context, key K, load func(context.Context) (V, error)) (V, error) {
	now := c.clock()
	c.mu.RLock()
	e := c.entries[key]
	c.mu.RUnlock()
	if !c.fresh(e, now) {
		var mine bool
		if e, mine = c.enter(key, now); mine {
			c.fill(context.WithoutCancel(ctx), key, e, load)
		}
	}
	select {
	case <-e.ready:
		return e.value, e.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// Drop forgets a value.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

func (c *Cache[K, V]) fresh(e *entry[V], now time.Time) bool {
	return e != nil && now.Sub(e.began) < c.maxAge
}

// enter returns the entry of key, or a new one that the caller has to fill.
func (c *Cache[K, V]) enter(key K, now time.Time) (e *entry[V], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.entries[key]
	if c.fresh(old, now) {
		return old, false
	}
	if !known && len(c.entries) >= c.limit {
		c.makeRoom(now)
	}
	e = &entry[V]{began: now, ready: make(chan struct{}), err: errUnfinished}
	c.entries[key] = e
	return e, true
}

// makeRoom drops the old ones among a few values, or else any one; the caller
// holds mu.
func (c *Cache[K, V]) makeRoom(now time.Time) {
	looked := 0
	for k, e := range c.entries {
		if looked++; looked > evictionLook {
			break
		}
		if !c.fresh(e, now) {
			delete(c.entries, k)
		}
	}
	for k := range c.entries {
		if len(c.entries) < c.limit {
			return
		}
		delete(c.entries, k)
	}
}

// fill reads the value of an entry and releases who waits for it.
func (c *Cache[K, V]) fill(ctx context.Context, key K, e *entry[V], load func(context.Context) (V, error)) {
	defer func() {
		if e.err != nil {
			c.mu.Lock()
			if c.entries[key] == e {
				delete(c.entries, key)
			}
			c.mu.Unlock()
		}
		close(e.ready)
	}()
	e.value, e.err = load(ctx)
}
