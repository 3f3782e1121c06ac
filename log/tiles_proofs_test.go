package log_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// grow appends n events, many at a time.
func (w *world) grow(tenant id.Tenant, n int) {
	w.t.Helper()
	for begin := 0; begin < n; begin += 200 {
		_, err := w.ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (sub log.Submission, _ error) {
			for i := begin; i < min(begin+200, n); i++ {
				sub.Drafts = append(sub.Drafts, w.draft(s, w.envelope(tenant, fmt.Sprint("grown-", i)), 0))
			}
			return sub, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// gauge returns the value of a metric without labels.
func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// Proofs are the same whatever the leaf cache has room for: nothing, some or all of
// the tiles. Two organizations take nothing of each other's.
func TestProofsWithAndWithoutLeafCache(t *testing.T) {
	const tiles = 24
	w := newWorld(t, storagetest.NewModel())
	for _, tenant := range []id.Tenant{red, blue} {
		w.grow(tenant, tiles*tlog.TileWidth+3)
	}
	type place struct {
		tenant id.Tenant
		at     id.Index
	}
	var want map[place][]id.Hash
	for _, c := range []struct {
		name       string
		room       int64
		least, all float64 // bytes that are held in the end
	}{
		{"none", 1, 0, 0},
		{"some", 200 << 10, 60 << 10, 200 << 10},
		{"all", 64 << 20, 2 * tiles * 8192, 2 * tiles * 8500},
	} {
		w.ledgers.Close()
		metrics := prometheus.NewRegistry()
		w.open(log.Options{LeafCacheBytes: c.room, Metrics: metrics})
		got := make(map[place][]id.Hash)
		for range 2 {
			for at := id.Index(0); at < tiles*tlog.TileWidth+3; at += 41 {
				for _, tenant := range []id.Tenant{red, blue} {
					s := w.state(tenant)
					leaf, _, proof, err := w.ledgers.Inclusion(t.Context(), s, at, s.Size())
					if err != nil {
						t.Fatalf("%s: leaf %d: %v", c.name, at, err)
					}
					got[place{tenant, at}] = append(slices.Clone(proof), leaf)
				}
			}
		}
		if want == nil {
			want = got
		}
		for p, proof := range want {
			if !slices.Equal(got[p], proof) {
				t.Errorf("%s: %v: another proof than without the cache", c.name, p)
			}
		}
		if held := gauge(t, metrics, "agentledger_leaf_cache_bytes"); held < c.least || held > c.all {
			t.Errorf("%s: %.0f bytes are held, want %.0f to %.0f", c.name, held, c.least, c.all)
		}
	}
}
