// Package archive moves the texts of old events to an object store, and reads them back.
//
// Engine is a storage.Engine that wraps another one. It stores the texts of the 256 events of a full entry bundle in one
// object (Texts, Codec). The inner engine keeps everything else: entries, IDs, columns, tiles and erasures. Engine keeps
// the promises of package storage, so callers do not notice where a text is stored.
//
// Invariants:
//
//   - The inner engine drops texts only after their object was written, read back and compared, and after the record of the
//     object is durable.
//   - A text is returned only if the record has the hash that the entry contains, and the envelope is the one that the
//     record names. Otherwise the error is storage.ErrCorrupt.
//   - The envelope of an erased event is never returned, even while the object contains it. Each append with erasures writes
//     a mark for every affected bundle. The mark is removed once no object of the bundle contains the envelopes.
//   - Heads, lookups, counters, tiles, records and appends never use the object store.
//   - Each store has its own archive. A store with archived bundles is not opened without its archive.
package archive

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// Inner is the engine that an archive wraps.
type Inner interface {
	storage.Engine
	storage.Copier
	TextDropper
}

// TextDropper is an engine that can remove the texts of events.
type TextDropper interface {
	// DropTexts removes Record and Envelope of the stored events [begin, end), at most storage.MaxErased, and returns
	// when the removal is durable: of all or of none. All other fields of the events stay, and the events may be erased
	// later. Events without texts are left unchanged. The engine returns such an event with Archived set.
	DropTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error
}

// reclaimer is an engine whose files contain dropped texts until they are rewritten.
type reclaimer interface {
	ReclaimTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error
}

// Options configure New. Engine and Objects are required.
type Options struct {
	Engine  Inner
	Objects objects.Store
	// Check returns an error if an envelope differs from the one that its record names. If nil, they are not compared.
	Check func(record, envelope []byte) error

	After      time.Duration    // a bundle is archived once its last event is older
	CacheBytes int64            // size of the cache of texts; default: 64 MiB
	Pass       time.Duration    // between two passes over all tenants; default: an hour
	Clock      func() time.Time // default: time.Now
	Logger     *slog.Logger     // default: discards
	// Owns reports whether this process works for a tenant, if several processes share a store. If nil, always. It does
	// no harm if two processes work for the same tenant.
	Owns     func(t id.Tenant) bool
	ReadOnly bool // nothing is written

	look    time.Duration // between two checks for erasures of other processes; tests shorten it
	width   id.Index      // events per bundle; tests use fewer
	newest  bool          // also archive the bundle with the latest event; for tests
	unpaced bool          // no pauses between moves; for tests
}

const (
	bundleEvents      = 256
	defaultCacheBytes = 64 << 20
	defaultPass       = time.Hour
)

func (o Options) withDefaults() Options {
	if o.width == 0 {
		o.width = bundleEvents
	}
	if o.look == 0 {
		o.look = lookPause
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.Pass == 0 {
		o.Pass = defaultPass
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Owns == nil {
		o.Owns = func(id.Tenant) bool { return true }
	}
	if o.Check == nil {
		o.Check = func([]byte, []byte) error { return nil }
	}
	return o
}

// Engine is a storage.Engine with an archive. Its methods may be called concurrently.
type Engine struct {
	storage.Engine // the inner one, for everything that needs no texts

	inner   Inner
	options Options
	codec   *Codec
	cached  *cache.Loading[place, *Texts]
	figures figures
	small   chan struct{} // a slot for each bundle of at most smallBytes that is being read
	large   chan struct{} // a slot for each larger one

	frontiers records.Store[frontier]
	bundles   records.Store[stored]
	marks     records.Store[mark]
	owners    records.Store[owner]
	drops     records.Store[dropped]

	moving sync.Mutex // held while objects are written or deleted; protects no fields

	mu      sync.Mutex
	owned   bool                    // the object store is known to belong to this store
	started bool                    // the owner record states that there may be bundles
	dirty   map[id.Tenant]time.Time // tenants that may have marks to process, since when
	resumed map[id.Tenant]struct{}  // tenants whose latest bundle's texts are known to be dropped
	moved   map[id.Tenant]id.Index  // first event whose disk space was not reclaimed yet
	wake    chan struct{}
}

var (
	_ storage.Engine = (*Engine)(nil)
	_ storage.Copier = (*Engine)(nil)
)

// place identifies a bundle.
type place struct {
	tenant id.Tenant
	number id.Index
}

// New returns an engine that wraps another one. It reads and writes nothing.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	codec, err := NewCodec()
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return &Engine{
		Engine: o.Engine, inner: o.Engine, options: o, codec: codec, figures: newFigures(),
		small: make(chan struct{}, smallLoads), large: make(chan struct{}, largeLoads),
		cached: cache.NewLoading(cache.LoadingOptions[place, *Texts]{
			MaxAge: cache.Forever, Limit: o.CacheBytes, LoadTime: loadTime,
			Weight: func(_ place, t *Texts) int64 { return int64(t.Bytes() + len(t.Events)*perText) },
		}),
		frontiers: records.New[frontier](o.Engine, kindFrontier, ""),
		bundles:   records.New[stored](o.Engine, kindBundle, ""),
		marks:     records.New[mark](o.Engine, kindMark, ""),
		owners:    records.New[owner](o.Engine, kindOwner, ""),
		drops:     records.New[dropped](o.Engine, kindDropped, ""),
		dirty:     make(map[id.Tenant]time.Time),
		resumed:   make(map[id.Tenant]struct{}),
		moved:     make(map[id.Tenant]id.Index),
		wake:      make(chan struct{}, 1),
	}, nil
}

const (
	perText  = 64               // overhead of a text in memory, in bytes
	loadTime = 30 * time.Second // bounds the read of one bundle

	// Limits for the bundles that are being read: together they take about 400 MiB at most.
	smallBytes = 2 << 20 // of an object and its texts
	smallLoads = 64
	largeLoads = 2
)

// IdempotencyKeys implements storage.Copier.
func (e *Engine) IdempotencyKeys(ctx context.Context, t id.Tenant,
	begin, end id.Index) iter.Seq2[storage.IndexedKey, error] {
	return e.inner.IdempotencyKeys(ctx, t, begin, end)
}

// Partition implements storage.Copier. It omits the records of the archive, which apply only to this store.
func (e *Engine) Partition(ctx context.Context, t id.Tenant) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for r, err := range e.inner.Partition(ctx, t) {
			if err == nil && isOwnKind(r.Kind) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
