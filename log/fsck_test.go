package log_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// watchedStore notifies a test of the reads of its ledgers.
type watchedStore struct {
	*storagetest.Model
	mu     sync.Mutex
	read   map[id.Tenant]int // events returned
	placed map[id.Tenant]int // names looked up
	ahead  int               // maximum number of events returned and not looked up yet
	lookup func(id.Tenant)   // called before each look-up
	change func(id.Tenant, *storage.Event)
}

func newWatchedStore() *watchedStore {
	return &watchedStore{Model: storagetest.NewModel(), read: map[id.Tenant]int{}, placed: map[id.Tenant]int{}}
}

func (s *watchedStore) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for e, err := range s.Model.Events(ctx, t, begin, end, parts) {
			if parts != 0 {
				s.note(t, &e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *watchedStore) note(t id.Tenant, e *storage.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[t]++
	s.ahead = max(s.ahead, s.read[t]-s.placed[t])
	if s.change != nil {
		s.change(t, e)
	}
}

func (s *watchedStore) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	if s.lookup != nil {
		s.lookup(t)
	}
	s.mu.Lock()
	s.placed[t] += len(names)
	s.mu.Unlock()
	return s.Model.Lookup(ctx, t, names)
}

func (s *watchedStore) has(enough func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return enough()
}

// await waits for enough reads.
func (s *watchedStore) await(t *testing.T, what string, enough func() bool) {
	for end := time.Now().Add(2 * time.Minute); !s.has(enough); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("waited in vain until %s", what)
			return
		}
	}
}

// filled returns ledgers with the given number of events of each organization, in a store whose counts start at 0.
func filled(t *testing.T, s *watchedStore, reds, blues int) *world {
	w := newWorld(t, s)
	w.fill(red, reds)
	w.fill(blue, blues)
	w.ledgers.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.read)
	clear(s.placed)
	s.ahead = 0
	return w
}

// While the first events of a ledger are looked up, later events are already read and inspected, but not many: memory
// does not grow with the ledger.
func TestFsckReadsAhead(t *testing.T) {
	const size = 4000
	store := newWatchedStore()
	w := filled(t, store, size, 1)
	var once sync.Once
	store.lookup = func(tenant id.Tenant) {
		if tenant == red {
			once.Do(func() { store.await(t, "the second portion was read", func() bool { return store.read[red] >= 512 }) })
		}
	}
	if got := w.fsck(store); len(got) != 0 {
		t.Errorf("got %d findings, %v first, want none", len(got), got[0])
	}
	if most := readAhead(); store.ahead > most || most > size/2 {
		t.Errorf("got %d events ahead, want at most %d", store.ahead, most)
	}
}

// Ledgers are examined concurrently, and findings are still reported in the order of the store.
func TestFsckOfSeveralLedgers(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 300, 200)
	store.change = func(_ id.Tenant, e *storage.Event) {
		if e.Index%2 == 1 && e.Record != nil { // more than a ledger may report before its turn
			e.Record[len(e.Record)/2] ^= 1
		}
	}
	var once sync.Once
	store.lookup = func(tenant id.Tenant) {
		if tenant == red {
			once.Do(func() { store.await(t, "the other ledger was read", func() bool { return store.read[blue] > 0 }) })
		}
	}
	var want []string
	for _, l := range []struct {
		tenant id.Tenant
		size   int
	}{{red, 300}, {blue, 200}} {
		origin := w.state(l.tenant).Identity().Origin
		for i := 1; i < l.size; i += 2 {
			want = append(want, fmt.Sprintf("%s: record %d: is not the one that the entry commits to", origin, i))
		}
	}
	got := w.fsck(store)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i].String() != want[i] {
			t.Fatalf("got %d findings, want %d; they differ from number %d on", len(got), len(want), i)
		}
	}
}

// readAhead is the number of events of a ledger that Fsck may have read and not looked up: the waiting portions, the
// portions being looked up and being read, and the names that are looked up together.
func readAhead() int { return (runtime.GOMAXPROCS(0)+4)*256 + 256 }

// endingProgress is a run that ends at a mark of the red organization.
type endingProgress struct {
	audit.Progress
	left int
}

var errEnded = errors.New("the run was ended")

func (p *endingProgress) Note(o id.Origin, m audit.Mark) error {
	if o == ledgertest.Genesis(red).Origin {
		if p.left--; p.left < 0 {
			return errEnded
		}
	}
	return p.Progress.Note(o, m)
}

// resumed runs fsck with a mark after each hundred events.
func (w *world) resumed(store *watchedStore, p audit.Progress) (found []audit.Finding, err error) {
	_, err = audit.ResumeFsck(w.t.Context(), store, w.keyring, nil, audit.Resume{Progress: p, Stretch: 100},
		func(f audit.Finding) { found = append(found, f) })
	return found, err
}

// An interrupted fsck continues at its marks, and finds the same as a single run.
func TestFsckGoesOn(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 1000, 250)
	store.change = func(tenant id.Tenant, e *storage.Event) {
		if tenant == red && (e.Index == 250 || e.Index == 777) {
			e.Envelope = slices.Clone(e.Envelope)
			e.Envelope[len(e.Envelope)-3] ^= 1
		}
	}
	want := w.fsck(store)
	if len(want) != 2 {
		t.Fatalf("in one run: got %v, want two findings", want)
	}
	path := filepath.Join(t.TempDir(), "progress.json")
	open := func() *audit.MarkFile {
		t.Helper()
		f, err := audit.OpenMarkFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := open()
	if _, err := w.resumed(store, &endingProgress{first, 5}); !errors.Is(err, errEnded) {
		t.Fatalf("got %v, want an end", err)
	}
	if err := first.Keep(); err != nil {
		t.Fatal(err)
	}
	clear(store.read)
	again := open()
	got, err := w.resumed(store, again)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	// A ledger shorter than the mark is reported, and so is a read of the event before it.
	if store.read[red] < 500 || store.read[red] > 510 {
		t.Errorf("read %d events of 1,000, want the 500 behind the mark", store.read[red])
	}
	if err := errors.Join(again.Remove(), again.Remove()); err != nil {
		t.Error(err)
	}
	clear(store.read)
	if got, err := w.resumed(store, open()); err != nil || !reflect.DeepEqual(got, want) || store.read[red] < 1000 {
		t.Errorf("anew: got %v, %v, %d events", got, err, store.read[red])
	}
}

// keptProgress has one mark and rejects another one.
type keptProgress struct{ mark audit.Mark }

func (p *keptProgress) Find(o id.Origin) (audit.Mark, bool) {
	return p.mark, o == ledgertest.Genesis(red).Origin
}

func (p *keptProgress) Note(id.Origin, audit.Mark) error { return nil }

// A stored mark is not changed, because others may read it concurrently. A mark without counts does not cover a whole
// ledger.
func TestMarkIsLeftAlone(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 300, 1)
	marks, err := audit.OpenMarkFile(filepath.Join(t.TempDir(), "progress.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.resumed(store, &endingProgress{marks, 1}); !errors.Is(err, errEnded) {
		t.Fatal(err)
	}
	mark, ok := marks.Find(ledgertest.Genesis(red).Origin)
	if !ok || mark.Size != 100 || len(mark.Counted) != 1 {
		t.Fatalf("got %+v, %v", mark, ok)
	}
	p := &keptProgress{mark}
	want := maps.Clone(mark.Counted)
	if got, err := w.resumed(store, p); err != nil || len(got) != 0 || !maps.Equal(p.mark.Counted, want) {
		t.Errorf("got %v, %v, counted %v, want %v", got, err, p.mark.Counted, want)
	}
	p.mark.Counted = nil
	if got, err := w.resumed(store, p); err != nil || len(got) != 1 || !strings.HasPrefix(got[0].Place, "counter") {
		t.Errorf("without counts: got %v, %v", got, err)
	}
}

// A mark for events that are not in the store is not used.
func TestMarkOfAnotherStore(t *testing.T) {
	store := newWatchedStore()
	w := filled(t, store, 300, 300)
	marks, err := audit.OpenMarkFile(filepath.Join(t.TempDir(), "progress.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []audit.Mark{{Size: 200, Root: id.Hash{1}}, {Size: 301}} {
		if err := marks.Note(ledgertest.Genesis(red).Origin, m); err != nil {
			t.Fatal(err)
		}
		clear(store.read)
		if got, err := w.resumed(store, marks); err != nil || len(got) != 0 || store.read[red] < 300 {
			t.Errorf("mark %v: got %v, %v, %d events", m, got, err, store.read[red])
		}
	}
}
