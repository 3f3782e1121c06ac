package log_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// taken returns the tenants that moved, in order.
func taken(m interface{ Take() ([]id.Tenant, bool) }) []id.Tenant {
	all, _ := m.Take()
	slices.Sort(all)
	return all
}

func TestMoves(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "before")
	first := w.ledgers.Moves()
	if got := taken(first); len(got) > 0 {
		t.Errorf("what moved before: got %v", got)
	}
	select {
	case <-first.Ready():
		t.Error("ready for nothing")
	default:
	}
	for i := range 5 {
		w.mustAppend(red, fmt.Sprint("red-", i))
	}
	second := w.ledgers.Moves()
	w.mustAppend(blue, "blue")
	<-first.Ready()
	if got, want := taken(first), []id.Tenant{red, blue}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	<-second.Ready()
	if got, want := taken(second), []id.Tenant{blue}; !slices.Equal(got, want) {
		t.Errorf("the second: got %v, want %v", got, want)
	}
	if got := taken(first); len(got) > 0 {
		t.Errorf("taken twice: %v", got)
	}
	w.mustAppend(red, "again")
	<-first.Ready()
	if got, want := taken(first), []id.Tenant{red}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFreezeForWhatIsKnownOutside(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "one")
	w.mustAppend(blue, "one")
	if err := w.ledgers.Freeze(t.Context(), red, "somebody knows more"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := w.state(red)
		if f := s.Fault(); f.Level != log.Frozen || f.Reason != "somebody knows more" || s.Detached() || s.Size() != 1 {
			t.Errorf("got %+v, detached %v, size %d", f, s.Detached(), s.Size())
		}
		w.refuses(red, "frozen")
		w.reopen(w.store)
	}
	w.mustAppend(blue, "two")
	if err := w.ledgers.Freeze(t.Context(), 77, "nobody"); err == nil {
		t.Error("no such ledger")
	}
}

// listings compares the reported handles with the expected ones: origin and key of the listed logs, in memory and
// read from the store.
func (w *world) listings(step string, want map[id.Tenant]log.Listing) {
	w.t.Helper()
	for range 2 {
		for _, tenant := range []id.Tenant{red, blue, ledgertest.Blue + 1000} {
			got, ok, err := w.ledgers.Listing(w.t.Context(), tenant)
			expected, listed := want[tenant]
			if err != nil || ok != listed || got != expected {
				w.t.Errorf("%s: tenant %d: got %+v, %v, %v; want %+v, %v", step, tenant, got, ok, err, expected, listed)
			}
		}
		w.reopen(w.store) // nothing is in memory after this
	}
}

// A log is listed from its creation with its latest key, and no longer when it is frozen. Followers are notified of
// each change, and not of events.
func TestListing(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	key := func(tenant id.Tenant) log.Listing {
		s := w.state(tenant)
		keys := s.LogKeys()
		return log.Listing{Origin: s.Identity().Origin, Key: keys[len(keys)-1].Verifier}
	}
	of := key(blue)
	w.listings("new", map[id.Tenant]log.Listing{red: key(red), blue: of})
	relisted := w.ledgers.Relisted()
	w.mustAppend(red, "one", "two")
	w.mustAppend(blue, "one")
	if got := taken(relisted); len(got) != 0 {
		t.Errorf("events: got %v", got)
	}
	old := key(red)
	step := func(name string, change keyChange) {
		t.Helper()
		if _, err := w.rekey(red, name, change); err != nil {
			t.Fatal(err)
		}
		if got := taken(relisted); !slices.Equal(got, []id.Tenant{red}) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	step("rotate", w.ledgers.RotateLogKey)
	now := key(red)
	if now == old || now.Key == (tlog.VerifierKey{}) {
		t.Fatalf("got %+v", now)
	}
	w.listings("two keys sign", map[id.Tenant]log.Listing{red: now, blue: of})
	relisted = w.ledgers.Relisted()
	step("retire", w.ledgers.RetireLogKey)
	w.listings("the new one alone", map[id.Tenant]log.Listing{red: now, blue: of})
	relisted = w.ledgers.Relisted()
	w.freeze(red)
	if got := taken(relisted); !slices.Equal(got, []id.Tenant{red}) {
		t.Errorf("frozen: got %v", got)
	}
	w.listings("frozen", map[id.Tenant]log.Listing{blue: of})
	relisted = w.ledgers.Relisted()
	successor := w.succeed(red)
	if got := taken(relisted); !slices.Contains(got, successor) || slices.Contains(got, blue) {
		t.Errorf("succeeded: got %v", got)
	}
	if got, ok, err := w.ledgers.Listing(t.Context(), successor); err != nil || !ok || got != key(successor) || got.Origin != old.Origin+"/2" {
		t.Errorf("the successor: got %+v, %v, %v", got, ok, err)
	}
}

// Followers are also notified of a fault found when a ledger is loaded: its head contradicts its anchor.
func TestListingOfARolledBackLog(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "one")
	w.mustAppend(blue, "one")
	older := model.Reopen()
	w.mustAppend(red, "two")
	w.reopen(older)
	relisted := w.ledgers.Relisted()
	if _, ok, err := w.ledgers.Listing(t.Context(), red); !ok || err != nil {
		t.Errorf("nobody has looked yet: got %v, %v", ok, err)
	}
	w.state(red)
	w.state(blue)
	<-relisted.Ready()
	if got := taken(relisted); !slices.Equal(got, []id.Tenant{red}) {
		t.Errorf("got %v", got)
	}
	if got, ok, err := w.ledgers.Listing(t.Context(), red); ok || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, ok, err := w.ledgers.Listing(t.Context(), blue); !ok || err != nil {
		t.Errorf("the neighbour: got %v, %v", ok, err)
	}
}

// The cost of listing a ledger that is not in memory: two records, and unsealing its log key.
func BenchmarkListing(b *testing.B) {
	model := storagetest.NewModel()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		b.Fatal(err)
	}
	open := func() *log.Ledgers {
		anchors, err := anchor.Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		ledgers, err := log.Open(b.Context(), log.Options{Store: model, Keyring: keyring, Anchors: anchors})
		if err != nil {
			b.Fatal(err)
		}
		return ledgers
	}
	first := open()
	if _, err := first.Create(b.Context(), red, ledgertest.Genesis(red)); err != nil {
		b.Fatal(err)
	}
	if err := first.Close(); err != nil {
		b.Fatal(err)
	}
	ledgers := open()
	defer ledgers.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := ledgers.Listing(b.Context(), red); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// counted counts the reads of ledgers and records.
type counted struct {
	log.Store
	heads, gets atomic.Int64
}

func (c *counted) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	c.heads.Add(1)
	return c.Store.Head(ctx, t)
}

func (c *counted) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, t, kind, key)
}

// Listing loads no ledger into memory.
func TestListingReadsNoTree(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "one")
	reads := &counted{Store: model}
	w.reopen(reads)
	for _, tenant := range []id.Tenant{red, blue} {
		if _, ok, err := w.ledgers.Listing(t.Context(), tenant); !ok || err != nil {
			t.Errorf("got %v, %v", ok, err)
		}
	}
	if gets, heads := reads.gets.Load(), reads.heads.Load(); gets != 4 || heads != 0 { // identity and fault of each
		t.Errorf("got %d records and %d heads read", gets, heads)
	}
}
