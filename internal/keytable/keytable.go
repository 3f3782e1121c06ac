// Package keytable verifies signatures with tables of the keys that sign most.
//
// Invariants:
//
//   - A verifier answers as edkey.Public.Verify, with a table or without one.
//   - Tables weigh at most Bytes together. A table is built at the third use of its key, and not before.
//   - No caller waits for a table. Builders are at most as many as processors, and an organization gets a hundred
//     tables a second at most. A key whose table could not be built asks again at its next use.
//   - Tables that push out others are few: ten a second for an organization, and fifty together. So more keys than have
//     room cost a fiftieth of a processor, and not a table for each third use.
package keytable

import (
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/ratelimit"
)

const (
	buildAt       = 3 // the use of a key at which its table is built
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
	// Bytes is for all tables together, about 60 KiB each. 0: there are none.
	Bytes int64

	// Clock returns the time.
	Clock func() time.Time
}

// Tables has verifiers of keys. Its methods may be called concurrently.
type Tables struct {
	options Options
	base    func() *edkey.Base                     // computed at the first table
	tables  *cache.Map[edkey.Public, *edkey.Table] // nil: there are none
	uses    *cache.Map[edkey.Public, int]
	owners  *cache.Map[id.Tenant, ratelimit.GCRA]
	places  chan struct{} // one for each builder
	metrics metrics

	mu       sync.Mutex
	replaces ratelimit.GCRA // tables that pushed out others, of all organizations
}

// New returns tables without any key. There are none, ever, without room for one table in each shard.
func New(o Options) *Tables {
	t := &Tables{options: o, metrics: newMetrics(), places: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if o.Bytes < shards*edkey.TableBytes {
		return t
	}
	t.base = sync.OnceValue(edkey.NewBase)
	t.tables = cache.NewMap(cache.MapOptions[edkey.Public, *edkey.Table]{Limit: o.Bytes, Shards: shards,
		Weight: func(edkey.Public, *edkey.Table) int64 { return edkey.TableBytes }})
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
	if table, found := t.tables.Get(key); found {
		t.metrics.hits.Inc()
		return table
	}
	t.metrics.misses.Inc()
	if t.countUse(key) >= buildAt {
		t.startBuild(owner, key)
	}
	return key
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
	select {
	case t.places <- struct{}{}:
	default:
		return
	}
	if !t.takeTurn(owner, key) {
		<-t.places
		return
	}
	go func() {
		defer func() { <-t.places }()
		t.build(key)
	}()
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

// build stores the table of a key. Two builders may do the same work once.
func (t *Tables) build(key edkey.Public) {
	began := time.Now()
	table, err := t.base().NewTable(key)
	if err != nil {
		return // a stored key that is no point verifies nothing
	}
	t.tables.Put(key, table)
	t.uses.Delete(key)
	t.metrics.builds.Observe(time.Since(began).Seconds())
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
		return float64(t.tables.TotalWeight() + edkey.BaseBytes)
	}))
}
