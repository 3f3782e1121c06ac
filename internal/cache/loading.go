package cache

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/storage"
)

// Forever is the MaxAge of values that never change, or that belong to a version.
const Forever = time.Duration(math.MaxInt64)

const (
	defaultPatience = 100 * time.Millisecond
	defaultLoadTime = 10 * time.Second
	maxLoads        = 1024 // concurrent reads
)

// errUnfinished is the error of a load until its read has returned.
var errUnfinished = errors.New("read did not end")

// LoadingOptions configure NewLoading. MaxAge and Limit are required.
type LoadingOptions[K comparable, V any] struct {
	MaxAge time.Duration
	Clock  func() time.Time // default: time.Now

	// Writes counts the writes that may change a value. It increases before such a write is acknowledged. A value stays
	// fresh beyond MaxAge while the count has not changed. If nil, MaxAge alone decides.
	Writes func() uint64

	// Limit, Weight, Shards and Hash are the same as in MapOptions.
	Limit  int64
	Weight func(K, V) int64
	Shards int
	Hash   func(K) uint64

	// Stale is how much longer than MaxAge a value may be returned while the store does not answer: the read has no
	// result after Patience, or failed because the store is unavailable. Use it for values that only this process
	// changes, and Drop them when it does. If zero, stale values are never returned.
	Stale    time.Duration
	Patience time.Duration // default: 100 ms
	LoadTime time.Duration // a read is canceled after it; default: 10 s
}

func (o LoadingOptions[K, V]) withDefaults() LoadingOptions[K, V] {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.LoadTime == 0 {
		o.LoadTime = defaultLoadTime
	}
	return o
}

// Loading is a bounded map whose values are read when they are needed. Its methods may be called concurrently.
type Loading[K comparable, V any] struct {
	options LoadingOptions[K, V]
	values  *Map[K, *loaded[V]]
	slots   chan struct{} // one for each read in flight
	stale   atomic.Uint64 // number of stale values returned

	mu      sync.RWMutex // also held for writes to values
	loads   map[K]*load[V]
	dropped map[K]time.Time // until when a key's values must not be returned as stale; nil without Stale
}

// loaded is a value that was read. It is immutable.
type loaded[V any] struct {
	value   V
	began   time.Time // start of the read
	version uint64    // that the caller of the read asked for
	writes  uint64    // at the start of the read
	expired bool
}

// request describes the value that a caller needs: one that is fresh at a time, for a version or a later one.
type request struct {
	at      time.Time // zero if MaxAge is Forever
	version uint64
	writes  uint64 // 0 without Writes
}

// NewLoading returns an empty cache.
func NewLoading[K comparable, V any](o LoadingOptions[K, V]) *Loading[K, V] {
	o = o.withDefaults()
	weight := o.Weight
	if weight == nil {
		weight = func(K, V) int64 { return 1 }
	}
	c := &Loading[K, V]{
		options: o, slots: make(chan struct{}, maxLoads), loads: make(map[K]*load[V]),
		values: NewMap(MapOptions[K, *loaded[V]]{
			Limit:  o.Limit,
			Shards: o.Shards,
			Hash:   o.Hash,
			Weight: func(key K, l *loaded[V]) int64 { return weight(key, l.value) },
		}),
	}
	if o.Stale > 0 {
		c.dropped = make(map[K]time.Time)
	}
	return c
}

// Get returns the value of a key, and calls read if it has no fresh value. read runs in its own goroutine and is not
// canceled when ctx ends, because other callers may wait for it. It returns the error of read or of ctx.
func (c *Loading[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	return c.GetAt(ctx, key, 0, read)
}

// GetAt is like Get, for a value that belongs to a version, such as an organization's config version. read must return
// the value of this version or a later one.
func (c *Loading[K, V]) GetAt(
	ctx context.Context, key K, version uint64, read func(context.Context) (V, error),
) (V, error) {
	query := c.requestNow(version)
	if known, _ := c.values.Get(key); c.isFresh(known, query) {
		return known.value, nil
	}
	return c.readFresh(ctx, key, query, read)
}

// Lookup returns the value of a key if a fresh value of the version, or a later one, is cached.
func (c *Loading[K, V]) Lookup(key K, version uint64) (value V, found bool) {
	known, _ := c.values.Get(key)
	if !c.isFresh(known, c.requestNow(version)) {
		return value, false
	}
	return known.value, true
}

// LastLoaded returns the cached value of a key, however old it is.
func (c *Loading[K, V]) LastLoaded(key K) (value V, found bool) {
	known, found := c.values.Get(key)
	if !found {
		return value, false
	}
	return known.value, true
}

// requestNow reads the clock only if values expire.
func (c *Loading[K, V]) requestNow(version uint64) request {
	if c.options.MaxAge == Forever {
		return request{version: version}
	}
	r := request{at: c.options.Clock(), version: version}
	if c.options.Writes != nil {
		r.writes = c.options.Writes()
	}
	return r
}

func (c *Loading[K, V]) isFresh(known *loaded[V], query request) bool {
	if known == nil || known.expired || known.version < query.version {
		return false
	}
	return c.options.MaxAge == Forever || query.at.Sub(known.began) < c.options.MaxAge ||
		c.options.Writes != nil && known.writes == query.writes
}

// strictTime is how long after Drop no value of a key is returned as a stale one. The change that caused the Drop may
// have an unknown outcome: it may be committed later, after a read that does not see it yet.
const strictTime = time.Hour

// Drop removes a value, for example the value of a revoked key. For an hour, no value of the key is returned as a stale
// one.
func (c *Loading[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values.Delete(key)
	delete(c.loads, key)
	if c.dropped == nil {
		return
	}
	now := c.options.Clock()
	for k, until := range c.dropped {
		if now.After(until) {
			delete(c.dropped, k)
		}
	}
	c.dropped[key] = now.Add(strictTime)
}

// Expire makes the next caller read a value again. The old value may still be returned while the store does not answer,
// so Expire is for changes after which an older value does no harm.
func (c *Loading[K, V]) Expire(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loads, key)
	if known, found := c.values.Get(key); found {
		old := *known
		old.expired = true
		c.values.Put(key, &old)
	}
}

// StaleAnswers returns how many stale values were returned.
func (c *Loading[K, V]) StaleAnswers() uint64 { return c.stale.Load() }

// StaleCounter returns the metric for StaleAnswers. values is a plural noun such as "sessions", the value of the label
// "of".
func StaleCounter(values string, answers func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name:        "agentledger_stale_answers_total",
		Help:        "Responses based on a stale value because the store did not answer.",
		ConstLabels: prometheus.Labels{"of": values},
	}, func() float64 { return float64(answers()) })
}

// isUnanswered reports whether an error means that the store did not answer, so that nothing is known about the value.
func isUnanswered(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled)
}
