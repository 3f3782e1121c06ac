package publicapi

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
)

// While all writers are busy, clients get uncompressed bytes at once, which are not cached.
func TestBusyGzipCache(t *testing.T) {
	metrics := prometheus.NewRegistry()
	p := newGzipCache(1<<20, metrics)
	plain, key := response{body: bytes.Repeat([]byte("entry"), 100)}, bundleKey{tenant: 11}
	for range cap(p.writers) {
		w := <-p.writers
		defer func() { p.writers <- w }()
	}
	got, err := p.compressBundle(plain)
	if err != nil || got.coding != "" || !bytes.Equal(got.body, plain.body) {
		t.Errorf("got %d bytes in coding %q, %v", len(got.body), got.coding, err)
	}
	p.storeBundle(key, got)
	if _, ok := p.cachedBundle(key); ok {
		t.Error("what is not compressed is kept")
	}
	counted, err := metrics.Gather()
	if err != nil || len(counted) != 1 || counted[0].Metric[0].Label[0].GetValue() != gzipBusy || counted[0].Metric[0].Counter.GetValue() != 1 {
		t.Errorf("counted %v, %v", counted, err)
	}
}

// Compression is deterministic, whatever a writer wrote before.
func TestGzipIsDeterministic(t *testing.T) {
	p := newGzipCache(1<<20, prometheus.NewRegistry())
	one, other := response{body: bytes.Repeat([]byte("one, and "), 3000)}, response{body: bytes.Repeat([]byte("another "), 9000)}
	first, err := p.compressBundle(one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.compressBundle(other); err != nil {
		t.Fatal(err)
	}
	again, err := p.compressBundle(one)
	if err != nil || !bytes.Equal(first.body, again.body) || first.entityTag() != again.entityTag() {
		t.Errorf("%d bytes, then %d: %v", len(first.body), len(again.body), err)
	}
}

// Cached bundles stay within their bound. A bundle is never returned for another one, and a frequently requested bundle
// stays cached.
func TestBundleCache(t *testing.T) {
	const room, size = 100 * (1000 + bundleBytes), 1000
	s := newBundleCache(room)
	random := rand.New(rand.NewPCG(1, 2))
	body := func(k bundleKey) []byte { return bytes.Repeat([]byte{byte(k.tenant), byte(k.index)}, size/2) }
	favourite, lost := bundleKey{tenant: 11, index: 1}, 0
	for range 20000 {
		if _, ok := s.Get(favourite); !ok {
			lost++
			s.Put(favourite, response{body: body(favourite)})
		}
		k := bundleKey{tenant: id.Tenant(11 + random.IntN(2)), index: uint64(random.IntN(250))}
		if r, ok := s.Get(k); ok && !bytes.Equal(r.body, body(k)) {
			t.Fatalf("another bundle than %v", k)
		}
		s.Put(k, response{body: body(k)})
		if counted := int64(s.Len()) * (size + bundleBytes); counted != s.TotalWeight() || counted > room {
			t.Fatalf("%d bytes by its account, %d counted, room for %d", s.TotalWeight(), counted, room)
		}
	}
	if s.Len() != 100 {
		t.Errorf("holds %d, want as many as fit", s.Len())
	}
	if lost > 1500 {
		t.Errorf("lost what is asked for all the time %d times", lost)
	}
	s.Put(bundleKey{tenant: 13}, response{body: make([]byte, room)})
	if _, ok := s.Get(bundleKey{tenant: 13}); ok || s.Len() != 100 {
		t.Error("keeps what is larger than its room")
	}
}
