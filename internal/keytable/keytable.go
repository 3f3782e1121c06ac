// Package keytable verifies signatures with precomputed tables for the most active keys, and caches verified signatures
// (Verified). Callers ask for a verifier and need not know whether the key has a table.
//
// Invariants:
//
//   - A verifier returns the same result as edkey.Public.Verify, with or without a table.
//   - All tables together use at most Options.Bytes. A table is built at the third use of its key.
//   - A key whose table was used 4096 times gets a wide table, which verifies in two thirds of the time. Wide tables have a
//     quarter of the memory. Building one takes less than a tenth of the time of those verifications, which bounds the cost
//     of keys that evict each other's wide tables.
//   - No caller waits for a table. There are at most as many builders as processors, and an organization gets at most a
//     hundred tables a second. If no table could be built, the next use of the key tries again.
//   - Tables that evict others are limited to ten a second for an organization and fifty in total. So a working set larger
//     than the memory costs a fiftieth of a processor.
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
	buildAt       = 3    // the use of a key that builds its table
	widenAt       = 4096 // the use of a table that builds a wide one
	wideShare     = 4    // wide tables get 1/wideShare of the memory
	shards        = 8
	buildInterval = 10 * time.Millisecond // between two tables of an organization, after the first buildsAtOnce
	buildsAtOnce  = 100

	// The rate of tables that evict another one, which may be as active.
	replaceInterval = 100 * time.Millisecond // for an organization
	replaceTogether = 20 * time.Millisecond  // for all organizations
	replacesAtOnce  = 10
	countedKeys     = 1 << 16 // keys whose uses are counted; an evicted key starts again at 0
	countedOwners   = 1 << 12
)

// Options configure New.
type Options struct {
	// Bytes bounds the memory of all tables: about 60 KiB for a table and 480 KiB for a wide one. If it is too small
	// for
	// one table per shard, there are no tables.
	Bytes int64

	// Clock returns the time.
	Clock func() time.Time
}

// Tables provides verifiers for keys. Its methods may be called concurrently.
type Tables struct {
	options Options
	base    func() *edkey.Base                     // computed when the first table is built
	tables  *cache.Map[edkey.Public, *counted]     // nil if tables are off
	wide    *cache.Map[edkey.Public, *edkey.Table] // nil if wide tables are off
	uses    *cache.Map[edkey.Public, int]
	owners  *cache.Map[id.Tenant, ratelimit.GCRA]
	slots   chan struct{} // one for each running builder
	metrics metrics

	mu       sync.Mutex
	replaces ratelimit.GCRA // tables that evicted others, of all organizations
}

// counted is a narrow table with the number of uses since its key's last wide table was started.
type counted struct {
	*edkey.Table
	uses atomic.Int32
}

// New returns empty tables. If Bytes has no capacity for one table in each shard, tables are off.
func New(o Options) *Tables {
	t := &Tables{options: o, metrics: newMetrics(), slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if o.Bytes < shards*edkey.TableBytes {
		return t
	}
	t.base = sync.OnceValue(edkey.NewBase)
	wideBytes := o.Bytes / wideShare
	if wideBytes < edkey.WideTableBytes {
		wideBytes = 0
	} else {
		t.wide = cache.NewMap(cache.MapOptions[edkey.Public, *edkey.Table]{Limit: wideBytes,
			Shards: int(min(shards, 1+wideBytes/(4*edkey.WideTableBytes))), // at least four tables fit into each
			Weight: func(edkey.Public, *edkey.Table) int64 { return edkey.WideTableBytes }})
	}
	t.tables = cache.NewMap(cache.MapOptions[edkey.Public, *counted]{Limit: o.Bytes - wideBytes, Shards: shards,
		Weight: func(edkey.Public, *counted) int64 { return edkey.TableBytes }})
	t.uses = cache.NewMap(cache.MapOptions[edkey.Public, int]{Limit: countedKeys, Shards: shards})
	t.owners = cache.NewMap(cache.MapOptions[id.Tenant, ratelimit.GCRA]{Limit: countedOwners})
	return t
}

// Verifier returns the verifier of a key, and counts the use for the organization. When it acts for a caller, the key
// must be registered with the caller's organization; otherwise, unauthenticated clients could fill the tables.
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

// countWide counts a use of a narrow table, and starts to build a wide one if it is due and a builder is free.
func (t *Tables) countWide(table *counted) {
	if t.wide == nil || table.uses.Add(1) < widenAt || !t.takeSlot() {
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

// startBuild starts to build a table if a builder is free and the organization is within its rate.
func (t *Tables) startBuild(owner id.Tenant, key edkey.Public) {
	if !t.takeSlot() {
		return
	}
	if !t.takeTurn(owner, key) {
		<-t.slots
		return
	}
	go t.build(key)
}

// takeSlot reserves a builder, and reports whether one was free.
func (t *Tables) takeSlot() bool {
	select {
	case t.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// takeTurn reports whether a table may be built now, and counts it.
func (t *Tables) takeTurn(owner id.Tenant, key edkey.Public) (taken bool) {
	now := id.InstantOf(t.options.Clock())
	if t.tables.HasRoom(key, edkey.TableBytes) {
		return t.takeOwnerTurn(owner, now, buildsAtOnce, buildInterval)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.replaces.Wait(now, replacesAtOnce, replaceTogether) > 0 {
		return false
	}
	if taken = t.takeOwnerTurn(owner, now, replacesAtOnce, replaceInterval); taken {
		t.replaces.Add(now, replaceTogether)
	}
	return taken
}

func (t *Tables) takeOwnerTurn(owner id.Tenant, now id.Instant, burst int, every time.Duration) (taken bool) {
	t.owners.Update(owner, func(g ratelimit.GCRA, _ bool) (ratelimit.GCRA, bool) {
		taken = g.Take(now, burst, every) == 0
		return g, true
	})
	return taken
}

// build builds and stores the table of a key, then frees the builder. Two builders may do the same work once.
func (t *Tables) build(key edkey.Public) {
	defer func() { <-t.slots }()
	began := time.Now()
	table, err := t.base().NewTable(key)
	if err != nil {
		return // a stored key that is not a point verifies nothing
	}
	t.tables.Put(key, &counted{Table: table})
	t.uses.Delete(key)
	t.metrics.builds.Observe(time.Since(began).Seconds())
}

// buildWide is like build, for a wide table. The narrow table is no longer used and is evicted eventually.
func (t *Tables) buildWide(key edkey.Public) {
	defer func() { <-t.slots }()
	began := time.Now()
	if table, err := t.base().NewWideTable(key); err == nil {
		t.wide.Put(key, table)
		t.metrics.builds.Observe(time.Since(began).Seconds())
	}
}

// metrics are the metrics of Tables.
type metrics struct {
	hits, misses prometheus.Counter
	lookups      *prometheus.CounterVec
	builds       prometheus.Histogram
}

func newMetrics() metrics {
	lookups := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentledger_key_table_lookups_total",
		Help: "Signatures verified with a table of the key (hit) or without one (miss)."}, []string{"result"})
	return metrics{hits: lookups.WithLabelValues("hit"), misses: lookups.WithLabelValues("miss"), lookups: lookups,
		builds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "agentledger_key_table_build_seconds",
			Help: "Time to build the table of one key.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 10)})}
}

// Register adds the metrics of the tables to a registry.
func (t *Tables) Register(r prometheus.Registerer) {
	r.MustRegister(t.metrics.lookups, t.metrics.builds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "agentledger_key_table_bytes", Help: "Memory of all key tables, including the table of the base point.",
	}, func() float64 {
		if t.tables == nil {
			return 0
		}
		return float64(t.totalWeight() + edkey.BaseBytes)
	}))
}

// totalWeight returns the bytes of all tables except the base table.
func (t *Tables) totalWeight() int64 {
	if t.wide == nil {
		return t.tables.TotalWeight()
	}
	return t.tables.TotalWeight() + t.wide.TotalWeight()
}
