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
)

// gzipLevel makes entry bundles 0.43 of their size. The next levels take two to
// six times as long and save no more, because the rest are hashes.
const gzipLevel = 1

// press compresses entry bundles. The work is for anonymous clients, so it is bounded: a
// full bundle is compressed once as long as the cache has room for it, and half of the
// processors compress at a time. While they are busy, clients get the bytes as they are.
type press struct {
	writers chan *gzip.Writer // those that are idle
	bundles *cache.Map[bundleKey, representation]
	done    *prometheus.CounterVec // by outcome
}

// bundleKey names a full entry bundle, which never changes.
type bundleKey struct {
	tenant id.Tenant
	index  uint64
}

// bundleBytes is about the memory of a bundle beside its body, in bytes.
const bundleBytes = 192

func newBundleCache(room int64) *cache.Map[bundleKey, representation] {
	return cache.NewMap(cache.MapOptions[bundleKey, representation]{
		Limit: room, Weight: func(_ bundleKey, r representation) int64 { return int64(len(r.body)) + bundleBytes },
	})
}

// Outcomes of asking for gzip.
const (
	pressKept = "kept" // compressed before
	pressMade = "made"
	pressBusy = "busy" // given as it is
)

// newPress returns a press that keeps so many bytes.
func newPress(room int64, metrics prometheus.Registerer) *press {
	writers := max(1, runtime.GOMAXPROCS(0)/2)
	p := &press{writers: make(chan *gzip.Writer, writers), bundles: newBundleCache(room)}
	for range writers {
		w, err := gzip.NewWriterLevel(io.Discard, gzipLevel)
		if err != nil {
			panic(err) // there is no such level
		}
		p.writers <- w
	}
	p.done = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_public_gzip_total", Help: "Entry bundles asked for with gzip: kept from before, made, or given as they are since all writers were busy.",
	}, []string{"outcome"})
	metrics.MustRegister(p.done)
	return p
}

// cachedBundle returns a bundle as it was compressed before.
func (p *press) cachedBundle(k bundleKey) (representation, bool) {
	r, ok := p.bundles.Get(k)
	if ok {
		p.done.WithLabelValues(pressKept).Inc()
	}
	return r, ok
}

// compress returns r in gzip, or as it is while all writers are busy. The same
// bytes always give the same.
func (p *press) compress(r representation) (representation, error) {
	select {
	case w := <-p.writers:
		defer func() { p.writers <- w }()
		p.done.WithLabelValues(pressMade).Inc()
		var out bytes.Buffer
		out.Grow(len(r.body) / 2)
		w.Reset(&out)
		if _, err := w.Write(r.body); err != nil {
			return representation{}, fmt.Errorf("compress: %w", err)
		}
		if err := w.Close(); err != nil {
			return representation{}, fmt.Errorf("compress: %w", err)
		}
		r.body, r.coding = bytes.Clone(out.Bytes()), codingGzip
		r.tag = r.entityTag()
		return r, nil
	default:
		p.done.WithLabelValues(pressBusy).Inc()
		return r, nil
	}
}

// storeBundle keeps a full bundle that is compressed.
func (p *press) storeBundle(k bundleKey, r representation) {
	if r.coding == codingGzip {
		p.bundles.Put(k, r)
	}
}
