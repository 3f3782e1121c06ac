package publicapi

import (
	"bytes"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/header"
)

// gzipLevel reduces entry bundles to 0.43 of their size. The next levels take two to
// six times as long and save no more, because the rest are hashes.
const gzipLevel = 1

// gzipCache compresses entry bundles. The work is for anonymous clients, so it is bounded: a
// full bundle is compressed once while the cache has capacity for it, and half of the
// processors compress at a time. While they are busy, clients get uncompressed bundles.
//
// It is not klauspost/compress/gzhttp, because gzhttp compresses each response again, which takes 15 to 40 times the
// processor time of a cached one (BenchmarkGet/entries-gzip), with neither a bound nor an ETag of the compressed bytes.
type gzipCache struct {
	writers chan *gzip.Writer // idle ones
	bundles *cache.Map[bundleKey, response]
	done    *prometheus.CounterVec // by outcome
}

// bundleKey names a full entry bundle, which never changes.
type bundleKey struct {
	tenant id.Tenant
	index  uint64
}

// bundleBytes is the approximate memory of a cached bundle in addition to its body, in bytes.
const bundleBytes = 192

func newBundleCache(limit int64) *cache.Map[bundleKey, response] {
	return cache.NewMap(cache.MapOptions[bundleKey, response]{
		Limit: limit, Weight: func(_ bundleKey, r response) int64 { return int64(len(r.body)) + bundleBytes },
	})
}

// Outcomes of requests that accept gzip.
const (
	gzipKept = "kept" // cached
	gzipMade = "made" // compressed now
	gzipBusy = "busy" // sent uncompressed
)

// newGzipCache returns a cache of at most limit bytes.
func newGzipCache(limit int64, metrics prometheus.Registerer) *gzipCache {
	writers := max(1, runtime.GOMAXPROCS(0)/2)
	p := &gzipCache{writers: make(chan *gzip.Writer, writers), bundles: newBundleCache(limit)}
	for range writers {
		w, err := gzip.NewWriterLevel(io.Discard, gzipLevel)
		if err != nil {
			panic(err) // there is no such level
		}
		p.writers <- w
	}
	p.done = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_public_gzip_total",
		Help: "Requests for entry bundles that accept gzip: kept (cached), made (compressed now) or busy " +
			"(sent uncompressed, because all writers were in use).",
	}, []string{"outcome"})
	metrics.MustRegister(p.done)
	return p
}

// cachedBundle returns a compressed bundle and whether it was cached.
func (p *gzipCache) cachedBundle(k bundleKey) (response, bool) {
	r, ok := p.bundles.Get(k)
	if ok {
		p.done.WithLabelValues(gzipKept).Inc()
	}
	return r, ok
}

// compressBundle returns r in gzip, or unchanged while all writers are busy. It is deterministic.
func (p *gzipCache) compressBundle(r response) (response, error) {
	select {
	case w := <-p.writers:
		defer func() { p.writers <- w }()
		p.done.WithLabelValues(gzipMade).Inc()
		var out bytes.Buffer
		out.Grow(len(r.body) / 2)
		w.Reset(&out)
		if _, err := w.Write(r.body); err != nil {
			return response{}, fmt.Errorf("compress: %w", err)
		}
		if err := w.Close(); err != nil {
			return response{}, fmt.Errorf("compress: %w", err)
		}
		r.body, r.coding = bytes.Clone(out.Bytes()), header.Gzip
		r.tag = r.entityTag()
		return r, nil
	default:
		p.done.WithLabelValues(gzipBusy).Inc()
		return r, nil
	}
}

// storeBundle caches a full bundle if it is compressed.
func (p *gzipCache) storeBundle(k bundleKey, r response) {
	if r.coding == header.Gzip {
		p.bundles.Put(k, r)
	}
}
