package storage_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// many is more than two pages of a listing.
const many = 2100

// tenantOf spreads tenants over both halves of the number range.
func tenantOf(i int) id.Tenant { return id.Tenant(uint64(i+1) * 0x9e3779b97f4a7c15) }

// batchOf returns the first batch of a ledger whose head and records contain its number. Every third ledger has no
// record of kind "b".
func batchOf(i int) storage.Batch {
	b := storage.Batch{Tenant: tenantOf(i), Head: storage.Head{Root: id.Hash{1, byte(i)}, Last: id.Hash{1}, Epoch: 1,
		ConfigVersion: uint64(i + 1)}}
	for _, kind := range []storage.Kind{"a", "b", "c"} {
		if kind == "b" && i%3 == 0 {
			continue
		}
		for _, key := range []string{"", "other"} {
			value := fmt.Appendf(nil, "%s %q %d", kind, key, i)
			b.Changes = append(b.Changes, storage.Change{Kind: kind, Key: key, Value: value})
		}
	}
	return b
}

// fill creates the ledgers [0, n).
func fill(t *testing.T, e storage.Engine, n int) {
	t.Helper()
	for some := range slices.Chunk(slices.Collect(numbers(n)), 200) {
		byStream := map[int][]storage.Batch{}
		for _, i := range some {
			b := batchOf(i)
			byStream[e.Stream(b.Tenant)] = append(byStream[e.Stream(b.Tenant)], b)
		}
		for batches := range maps.Values(byStream) {
			for _, err := range e.Append(batches).Wait() {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func numbers(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
}

// slow hides that an engine is a Surveyor.
type slow struct{ storage.SurveyStore }

func TestLedgers(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		e := open(t)
		fill(t, e, many)
		for name, store := range map[string]storage.SurveyStore{"at once": e, "one by one": slow{e}} {
			odd := func(t id.Tenant) bool { return t%2 == 1 }
			for _, q := range []storage.SurveyQuestion{
				{}, {Kinds: []storage.Kind{"a", "b", "absent"}}, {Wanted: odd, Kinds: []storage.Kind{"b"}},
				{Wanted: func(id.Tenant) bool { return false }, Kinds: []storage.Kind{"a"}},
			} {
				checkSurvey(t, fmt.Sprintf("%s, kinds %q, all %v", name, q.Kinds, q.Wanted == nil), store, q)
			}
		}
	})
}

// checkSurvey compares all results with the batches.
func checkSurvey(t *testing.T, what string, store storage.SurveyStore, q storage.SurveyQuestion) {
	t.Helper()
	want := map[id.Tenant]storage.Batch{}
	for i := range many {
		if b := batchOf(i); q.Wants(b.Tenant) {
			want[b.Tenant] = b
		}
	}
	last, n := id.Tenant(0), 0
	for l, err := range storage.Survey(t.Context(), store, q) {
		if err != nil || l.Err != nil {
			t.Fatalf("%s: %v, %v", what, err, l.Err)
		}
		if n > 0 && l.Tenant <= last {
			t.Errorf("%s: %d after %d", what, l.Tenant, last)
		}
		last, n = l.Tenant, n+1
		b := want[l.Tenant]
		if l.Head != b.Head {
			t.Errorf("%s: tenant %d: head %+v, want %+v", what, l.Tenant, l.Head, b.Head)
		}
		values := map[storage.Kind]string{}
		for _, c := range b.Changes {
			if c.Key == "" && slices.Contains(q.Kinds, c.Kind) {
				values[c.Kind] = string(c.Value)
			}
		}
		got := map[storage.Kind]string{}
		for kind, value := range l.Values {
			got[kind] = string(value)
		}
		if !maps.Equal(got, values) {
			t.Errorf("%s: tenant %d: got %q, want %q", what, l.Tenant, got, values)
		}
	}
	if n != len(want) {
		t.Errorf("%s: got %d ledgers, want %d", what, n, len(want))
	}
}

func TestSurveyEnds(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		e := open(t)
		fill(t, e, 3)
		n := 0
		for range storage.Survey(t.Context(), e, storage.SurveyQuestion{Kinds: []storage.Kind{"a"}}) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("a consumer that had enough got %d", n)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var failed error
		for _, err := range storage.Survey(ended, e, storage.SurveyQuestion{}) {
			failed = err
		}
		if failed == nil {
			t.Error("a survey whose context ended said nothing")
		}
	})
}

// damaged is a store in which the records of one tenant cannot be read.
type damaged struct {
	storage.SurveyStore
	tenant id.Tenant
}

func (d damaged) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if t == d.tenant {
		return storage.Record{}, storage.ErrCorrupt
	}
	return d.SurveyStore.Get(ctx, t, kind, key)
}

func TestDamagedLedger(t *testing.T) {
	e := enginetest.Pebble(t)
	fill(t, e, 3)
	store := damaged{e, tenantOf(1)}
	for l, err := range storage.Survey(t.Context(), store, storage.SurveyQuestion{Kinds: []storage.Kind{"a"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if bad := l.Err != nil; bad != (l.Tenant == store.tenant) {
			t.Errorf("tenant %d: got error %v", l.Tenant, l.Err)
		}
	}
}
