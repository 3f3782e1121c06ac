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

// Forever as MaxAge is for values that never change, or that belong to a version.
const Forever = time.Duration(math.MaxInt64)

const (
	defaultPatience = 100 * time.Millisecond
	defaultLoadTime = 10 * time.Second
	maxLoads        = 1024 // reads under way at a time
)

// errUnfinished is the error of a read that did not return.
var errUnfinished = errors.New("read did not end")

// LoadingOptions configure NewLoading. MaxAge and Limit are required.
type LoadingOptions[K comparable, V any] struct {
	MaxAge time.Duration
	Clock  func() time.Time // default: time.Now

	// Writes grows with each write that may change a value, before that write is acknowledged. A value stays fresh
	// beyond MaxAge until it grows. nil: writes are not known.
	Writes func() uint64

	// The bound, as in MapOptions.
	Limit  int64
	Weight func(K, V) int64
	Shards int
	Hash   func(K) uint64

	// Stale is for how long beyond MaxAge a value is still returned while the store
	// does not answer: the read has no result after Patience, or failed because the
	// store can't be reached. Give it to values that only writes of this process
	// change, and Drop them there. 0: never.
	Stale    time.Duration
	Patience time.Duration // default 100 ms
	LoadTime time.Duration // after which a read is ended; default 10 s
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

// Loading is a bounded map of values that are read when they are needed. Its methods may
// be called concurrently.
type Loading[K comparable, V any] struct {
	options LoadingOptions[K, V]
	values  *Map[K, *loaded[V]]
	slots   chan struct{} // one for each read under way
	stale   atomic.Uint64 // stale values returned

	mu      sync.RWMutex // values are written under it
	loads   map[K]*load[V]
	dropped map[K]time.Time // until when values are not shown as stale ones; nil without Stale
}

// loaded is a value that was read. It never changes.
type loaded[V any] struct {
	value   V
	began   time.Time // of its read
	version uint64    // for which it was read
	writes  uint64    // when its read began
	expired bool
}

// request is a caller's demand: a value that is good at a time and for a version.
type request struct {
	at      time.Time // zero with MaxAge Forever
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

// Get returns the value of a key, reading it with read when none is fresh. read runs
// in a goroutine of its own and does not end with ctx, because others may wait for
// it. Errors are those of read, and that of ctx.
func (c *Loading[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	return c.GetAt(ctx, key, 0, read)
}

// GetAt is Get for a value that belongs to a version, such as the config version of an
// organization: read MUST return the value of this version or a later one.
func (c *Loading[K, V]) GetAt(
	ctx context.Context, key K, version uint64, read func(context.Context) (V, error),
) (V, error) {
	asked := c.requestNow(version)
	if known, _ := c.values.Get(key); c.isFresh(known, asked) {
		return known.value, nil
	}
	return c.readFresh(ctx, key, asked, read)
}

// Lookup returns the value of a key if it is there, fresh, and of the version or a later
// one.
func (c *Loading[K, V]) Lookup(key K, version uint64) (value V, found bool) {
	known, _ := c.values.Get(key)
	if !c.isFresh(known, c.requestNow(version)) {
		return value, false
	}
	return known.value, true
}

// LastLoaded returns the value of a key that was read last, however old it is.
func (c *Loading[K, V]) LastLoaded(key K) (value V, found bool) {
	known, found := c.values.Get(key)
	if !found {
		return value, false
	}
	return known.value, true
}

// requestNow spares values that never get too old a look at the clock.
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

func (c *Loading[K, V]) isFresh(known *loaded[V], asked request) bool {
	if known == nil || known.expired || known.version < asked.version {
		return false
	}
	return c.options.MaxAge == Forever || asked.at.Sub(known.began) < c.options.MaxAge ||
		c.options.Writes != nil && known.writes == asked.writes
}

// strictTime is for how long after Drop no value of a key is shown as a stale one.
// The change that it was dropped for may have an unknown outcome: it may land later,
// after a read that does not see it yet.
const strictTime = time.Hour

// Drop forgets a value: of a key that was revoked, for example. No value of the key
// is shown as a stale one for an hour after it.
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

// Expire makes a value one that has to be read again, and may be shown while the
// store does not answer: it is for changes that an older value does not harm.
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

// StaleAnswers returns how often a value was returned that was older than MaxAge.
func (c *Loading[K, V]) StaleAnswers() uint64 { return c.stale.Load() }

// StaleCounter is the metric of StaleAnswers. The argument values names them, for example "sessions", a
// plural noun.
func StaleCounter(values string, answers func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name:        "agentledger_stale_answers_total",
		Help:        "Answers from values that were older than they may be while the store answers.",
		ConstLabels: prometheus.Labels{"of": values},
	}, func() float64 { return float64(answers()) })
}

// IsUnanswered reports whether an error says that the store did not answer, and
// nothing about the value.
func IsUnanswered(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled)
}
