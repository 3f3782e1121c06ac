// Package cache remembers what was read a moment ago, for values that many
// requests need and that may be a little old but never older than that.
//
// What always holds:
//
//   - As long as the store answers, a value was read at most MaxAge before it is
//     asked for, counted from the beginning of the read.
//   - While the store does not answer, a value may be older by at most Stale. With
//     Stale 0 it never is.
//   - What was dropped is read again by whoever asks after Drop returned, and is
//     never shown as a stale value, also when that read has no answer.
//   - One key is read by one goroutine at a time. Callers wait for it for as long as
//     their contexts allow, the first one too.
//   - A read ends after LoadTime. One that can't be ended keeps its key and one of
//     maxLoads places, so that reads never pile up.
//   - Errors are not remembered, and the number of values has a bound. Where Bytes is
//     given, so has what they weigh together.
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

// Forever as MaxAge is for values that never change.
const Forever = time.Duration(math.MaxInt64)

const (
	defaultPatience = 100 * time.Millisecond
	defaultLoadTime = 10 * time.Second
	maxLoads        = 1024 // reads under way at a time
)

// errUnfinished is what waiters get when the read they wait for did not return.
var errUnfinished = errors.New("read did not end")

// Options configure New. MaxAge and Limit are required.
type Options struct {
	MaxAge time.Duration
	Limit  int              // values
	Clock  func() time.Time // default: time.Now

	// Bytes is what all values may weigh, by their own account (Weighted). A value that
	// weighs more than that is not kept. 0: no bound.
	Bytes int64

	// Stale is for how long beyond MaxAge a value is still returned while the store
	// does not answer: the read has no result after Patience, or failed because the
	// store can't be reached. Give it to values that only writes of this process
	// change, and Drop them there. 0: never.
	Stale    time.Duration
	Patience time.Duration // default 100 ms
	LoadTime time.Duration // after which a read is ended; default 10 s
}

// Weighted is a value that knows about how many bytes it takes.
type Weighted interface{ Weight() int64 }

// weightOf returns 0 for a value that is not Weighted.
func weightOf(value any) int64 {
	if w, ok := value.(Weighted); ok {
		return w.Weight()
	}
	return 0
}

func (o Options) withDefaults() Options {
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

// Cache is a bounded map of values that are read when needed. Its methods may
// be called concurrently.
type Cache[K comparable, V any] struct {
	options Options
	slots   chan struct{} // one for each read under way
	stale   atomic.Uint64 // stale values returned

	mu      sync.RWMutex
	entries map[K]*entry[V]
	bytes   int64 // that entries weigh
	loads   map[K]*load[V]
	dropped map[K]time.Time // until when values are not shown as stale ones; nil without Stale
}

// entry is a value that was read. It never changes.
type entry[V any] struct {
	value   V
	began   time.Time // of its read
	weight  int64
	expired bool
}

// New returns an empty cache.
func New[K comparable, V any](o Options) *Cache[K, V] {
	c := &Cache[K, V]{
		options: o.withDefaults(), slots: make(chan struct{}, maxLoads),
		entries: make(map[K]*entry[V]), loads: make(map[K]*load[V]),
	}
	if o.Stale > 0 {
		c.dropped = make(map[K]time.Time)
	}
	return c
}

// Get returns the value of key, reading it with read when none is fresh. read runs
// in a goroutine of its own and does not end with ctx, because others may wait for
// it. Errors are those of read, and that of ctx.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	asked := c.options.Clock()
	c.mu.RLock()
	e := c.entries[key]
	c.mu.RUnlock()
	if c.fresh(e, asked) {
		return e.value, nil
	}
	return c.renew(ctx, key, asked, read)
}

func (c *Cache[K, V]) fresh(e *entry[V], asked time.Time) bool {
	return e != nil && !e.expired && asked.Sub(e.began) < c.options.MaxAge
}

// strictTime is for how long after Drop no value of a key is shown as a stale one.
// The change that it was dropped for may have an unknown outcome: it may land later,
// after a read that does not see it yet.
const strictTime = time.Hour

// Drop forgets a value: of a key that was revoked, for example. No value of the key
// is shown as a stale one for an hour after it.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(key)
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

// Expire makes a value one that has to be read again, and may be shown while the
// store does not answer: it is for changes that an older value does not harm.
func (c *Cache[K, V]) Expire(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loads, key)
	if e := c.entries[key]; e != nil {
		c.entries[key] = &entry[V]{value: e.value, began: e.began, weight: e.weight, expired: true}
	}
}

// StaleAnswers returns how often a value was returned that was older than MaxAge.
func (c *Cache[K, V]) StaleAnswers() uint64 { return c.stale.Load() }

// StaleCounter is the metric of StaleAnswers of what a cache holds, a plural noun.
func StaleCounter(what string, answers func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name:        "agentledger_stale_answers_total",
		Help:        "Answers from values that were older than they may be while the store answers.",
		ConstLabels: prometheus.Labels{"of": what},
	}, func() float64 { return float64(answers()) })
}

// Unanswered reports whether an error says that the store did not answer, and
// nothing about what was asked for.
func Unanswered(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
