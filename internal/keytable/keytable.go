// Package keytable verifies signatures with tables of the keys that sign most.
//
// Invariants:
//
//   - A verifier answers as edkey.Public.Verify, with a table or without one.
//   - Tables weigh at most Bytes together. A table is built at the third use of its key, and not before.
//   - A key whose table was used 4,096 times gets a wide table, which verifies in two thirds of the time. Wide tables
//     have a quarter of Bytes. Building one takes less than a tenth of the verifications that earned it, so keys that
//     push out each other's wide tables cost no more than that.
//   - No caller waits for a table. Builders are at most as many as processors, and an organization gets a hundred
//     tables a second at most. A key whose table could not be built asks again at its next use.
//   - Tables that push out others are few: ten a second for an organization, and fifty together. So more keys than have
//     room cost a fiftieth of a processor, and not a table for each third use.
package keytable

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/ratelimit"
)

const (
	buildAt       = 3    // the use of a key at which its table is built
	widenAt       = 4096 // the use of a table at which a wide one is built
	wideShare     = 4    // a part in so many of the bytes is for wide tables
	shards        = 8
	buildInterval = 10 * time.Millisecond // between two tables of an organization, after the first hundred
	buildsAtOnce  = 100

	// The pace where a table pushes out another one, which may be used as much.
	replaceInterval = 100 * time.Millisecond // of an organization
	replaceTogether = 20 * time.Millisecond  // of all
	replacesAtOnce  = 10
	countedKeys     = 1 << 16 // keys whose uses are counted; a key beyond them begins anew
	countedOwners   = 1 << 12
)

// Options configure New.
type Options struct {
	// Bytes is for all tables together, about 60 KiB each, and 480 KiB for a wide one. 0: there are none.
	Bytes int64

	// Clock returns the time.
	Clock func() time.Time
}

// Tables has verifiers of keys. Its methods may be called concurrently.
type Tables struct {
	options Options
	base    func() *edkey.Base                     // computed at the first table
	tables  *cache.Map[edkey.Public, *counted]     // nil: there are none
	wide    *cache.Map[edkey.Public, *edkey.Table] // nil: there are none
	uses    *cache.Map[edkey.Public, int]
	owners  *cache.Map[id.Tenant, ratelimit.GCRA]
	places  chan struct{} // one for each builder
	metrics metrics

	mu       sync.Mutex
	replaces ratelimit.GCRA // tables that pushed out others, of all organizations
}

// counted is a narrow table with its uses since the last wide one of its key was begun.
type counted struct {
	*edkey.Table
	uses atomic.Int32
}

// New returns tables without any key. There are none, ever, without room for one table in each shard.
func New(o Options) *Tables {
	t := &Tables{options: o, metrics: newMetrics(), places: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if o.Bytes < shards*edkey.TableBytes {
		return t
	}
	t.base = sync.OnceValue(edkey.NewBase)
	ofWide := o.Bytes / wideShare
	if ofWide < edkey.WideTableBytes {
		ofWide = 0
	} else {
		t.wide = cache.NewMap(cache.MapOptions[edkey.Public, *edkey.Table]{Limit: ofWide,
			Shards: int(min(shards, 1+ofWide/(4*edkey.WideTableBytes))), // each has room for some
			Weight: func(edkey.Public, *edkey.Table) int64 { return edkey.WideTableBytes }})
	}
	t.tables = cache.NewMap(cache.MapOptions[edkey.Public, *counted]{Limit: o.Bytes - ofWide, Shards: shards,
		Weight: func(edkey.Public, *counted) int64 { return edkey.TableBytes }})
	t.uses = cache.NewMap(cache.MapOptions[edkey.Public, int]{Limit: countedKeys, Shards: shards})
	t.owners = cache.NewMap(cache.MapOptions[id.Tenant, ratelimit.GCRA]{Limit: countedOwners})
	return t
}

// Verifier returns the verifier of a key, whose use it counts for the organization. On behalf of a caller, keys MUST be
// registered ones of its organization, because a stranger could fill the tables otherwise.
func (t *Tables) Verifier(owner id.Tenant, key edkey.Public) event.Verifier {
	if t.tables == nil {
		return key
	}
	if t.wide != nil {
		if table, found := t.wide.Get(key); found {
			t.metrics.hits.Inc()
			return table
		}
	}
	if table, found := t.tables.Get(key); found {
		t.metrics.hits.Inc()
		t.countWide(table)
		return table.Table
	}
	t.metrics.misses.Inc()
	if t.countUse(key) >= buildAt {
		t.startBuild(owner, key)
	}
	return key
}

// countWide counts the use of a narrow table, and begins a wide one when it is due and a builder is free.
func (t *Tables) countWide(table *counted) {
	if t.wide == nil || table.uses.Add(1) < widenAt || !t.takePlace() {
		return
	}
	table.uses.Store(0)
	go t.buildWide(table.Public())
}

func (t *Tables) countUse(key edkey.Public) (uses int) {
	t.uses.Update(key, func(before int, _ bool) (int, bool) {
		uses = min(before+1, buildAt)
		return uses, true
	})
	return uses
}

// startBuild builds a table if a builder is free and the organization has not had too many.
func (t *Tables) startBuild(owner id.Tenant, key edkey.Public) {
	if !t.takePlace() {
		return
	}
	if !t.takeTurn(owner, key) {
		<-t.places
		return
	}
	go t.build(key)
}

// takePlace reports whether a builder is free, and takes it.
func (t *Tables) takePlace() bool {
	select {
	case t.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// takeTurn reports whether a table may be built now, and counts it.
func (t *Tables) takeTurn(owner id.Tenant, key edkey.Public) (taken bool) {
	now := id.InstantOf(t.options.Clock())
	if t.tables.HasRoom(key, edkey.TableBytes) {
		return t.takeTurnOf(owner, now, buildsAtOnce, buildInterval)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.replaces.Wait(now, replacesAtOnce, replaceTogether) > 0 {
		return false
	}
	if taken = t.takeTurnOf(owner, now, replacesAtOnce, replaceInterval); taken {
		t.replaces.Add(now, replaceTogether)
	}
	return taken
}

func (t *Tables) takeTurnOf(owner id.Tenant, now id.Instant, burst int, every time.Duration) (taken bool) {
	t.owners.Update(owner, func(g ratelimit.GCRA, _ bool) (ratelimit.GCRA, bool) {
		taken = g.Take(now, burst, every) == 0
		return g, true
	})
	return taken
}

// build stores the table of a key, and leaves the builder's place. Two builders may do the same work once.
func (t *Tables) build(key edkey.Public) {
	defer func() { <-t.places }()
	began := time.Now()
	table, err := t.base().NewTable(key)
	if err != nil {
		return // a stored key that is no point verifies nothing
	}
	t.tables.Put(key, &counted{Table: table})
	t.uses.Delete(key)
	t.metrics.builds.Observe(time.Since(began).Seconds())
}

// buildWide is build for the wide table. The narrow one, which is not used any more, is pushed out by others.
func (t *Tables) buildWide(key edkey.Public) {
	defer func() { <-t.places }()
	began := time.Now()
	if table, err := t.base().NewWideTable(key); err == nil {
		t.wide.Put(key, table)
		t.metrics.builds.Observe(time.Since(began).Seconds())
	}
}

// metrics of the tables.
type metrics struct {
	hits, misses prometheus.Counter
	lookups      *prometheus.CounterVec
	builds       prometheus.Histogram
}

func newMetrics() metrics {
	lookups := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentledger_key_table_lookups_total",
		Help: "Signatures verified with a table of their key (hit) or without one (miss)."}, []string{"result"})
	return metrics{hits: lookups.WithLabelValues("hit"), misses: lookups.WithLabelValues("miss"), lookups: lookups,
		builds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "agentledger_key_table_build_seconds",
			Help: "Time to build the table of one key.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 10)})}
}

// Register adds the metrics of the tables to a registry.
func (t *Tables) Register(r prometheus.Registerer) {
	r.MustRegister(t.metrics.lookups, t.metrics.builds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "agentledger_key_table_bytes", Help: "Memory for tables of keys, that of the base point included.",
	}, func() float64 {
		if t.tables == nil {
			return 0
		}
		return float64(t.totalWeight() + edkey.BaseBytes)
	}))
}

// totalWeight returns the bytes of the tables of keys.
func (t *Tables) totalWeight() int64 {
	if t.wide == nil {
		return t.tables.TotalWeight()
	}
	return t.tables.TotalWeight() + t.wide.TotalWeight()
}
