// Package archive moves the texts of old events to an object store, and reads them back.
//
// Engine is a storage engine around another one. The texts of the 256 events of a full entry bundle are one object
// (Texts, Codec), and the inner engine keeps everything else: entries, ids, columns, tiles and erasures. Engine keeps the
// promises of package storage, so no caller notices where a text is stored.
//
// Invariants:
//
//   - The inner engine drops texts only after their object was written, read back and compared, and after the record
//     of the object is durable.
//   - A text is returned only if the record has the hash that the entry names, and the envelope is the one that the
//     record names. All else is storage.ErrCorrupt.
//   - The envelope of an erased event is never returned, also while the object has it. Each append with erasures writes
//     a mark for every bundle that it touches. The mark goes when no object of the bundle holds the envelopes.
//   - Heads, look-ups, counters, tiles, records and appends never use the object store.
//   - One store has an archive for itself. A store with archived bundles is not opened without its archive.
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

// Inner is the engine that an archive is around.
type Inner interface {
	storage.Engine
	storage.Copier
	TextDropper
}

// TextDropper is an engine that can do without the texts of events.
type TextDropper interface {
	// DropTexts takes Record and Envelope of the stored events [begin, end) away, at most storage.MaxErased, and
	// returns when that is durable: of all or of none. All else of the events stays, and they may be erased
	// later. Events without texts are left as they are. The engine reads such an event with Archived.
	DropTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error
}

// reclaimer is an engine whose files hold dropped texts until they are rewritten.
type reclaimer interface {
	ReclaimTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error
}

// Options configure New. Engine and Objects are required.
type Options struct {
	Engine  Inner
	Objects objects.Store
	// Check reports how an envelope differs from the one that its record names. nil: they are not compared.
	Check func(record, envelope []byte) error

	After      time.Duration    // a bundle is archived when its last event is older
	CacheBytes int64            // of texts in memory; default 64 MiB
	Pass       time.Duration    // between two looks at all tenants; default an hour
	Clock      func() time.Time // default time.Now
	Logger     *slog.Logger     // default: none
	// Owns reports whether this process works for a tenant, where several share a store. Default: always. Two
	// that work for one tenant do no harm.
	Owns     func(t id.Tenant) bool
	ReadOnly bool // nothing is written

	look    time.Duration // between two looks at erasures of other processes; tests have a shorter one
	width   id.Index      // events of a bundle; tests have smaller ones
	newest  bool          // the bundle with the newest event is archived too; for tests
	unpaced bool          // moves have no pauses between them; for tests
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
	storage.Engine // the inner one, for all that needs no texts

	inner   Inner
	options Options
	codec   *Codec
	cached  *cache.Loading[place, *Texts]
	figures figures
	small   chan struct{} // a place for each bundle of at most smallBytes that is being read
	large   chan struct{} // and for each of the others

	frontiers records.Store[frontier]
	bundles   records.Store[stored]
	marks     records.Store[mark]
	owners    records.Store[owner]
	drops     records.Store[dropped]

	moving sync.Mutex // objects are written and deleted under it, and nothing else of this struct's

	mu      sync.Mutex
	owned   bool                    // the object store is known to be this store's
	begun   bool                    // the owner's record says that there may be bundles
	dirty   map[id.Tenant]time.Time // may have marks to work on, since
	resumed map[id.Tenant]struct{}  // the texts of the newest bundle are known to be dropped
	moved   map[id.Tenant]id.Index  // first event of those whose room was not reclaimed
	wake    chan struct{}
}

var (
	_ storage.Engine = (*Engine)(nil)
	_ storage.Copier = (*Engine)(nil)
)

// place names a bundle.
type place struct {
	tenant id.Tenant
	number id.Index
}

// New returns an engine around another one. It reads and writes nothing.
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
	perText  = 64               // bytes of a text in memory beside its own
	loadTime = 30 * time.Second // of one bundle

	// The bounds of bundles that are being read: together they take some 400 MiB at most.
	smallBytes = 2 << 20 // of an object and its texts
	smallLoads = 64
	largeLoads = 2
)

// IdempotencyKeys implements storage.Copier.
func (e *Engine) IdempotencyKeys(ctx context.Context, t id.Tenant,
	begin, end id.Index) iter.Seq2[storage.IndexedKey, error] {
	return e.inner.IdempotencyKeys(ctx, t, begin, end)
}

// Partition implements storage.Copier. It leaves out the records of the archive, which are of this store alone.
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
