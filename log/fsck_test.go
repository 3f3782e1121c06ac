package log_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// watchedStore tells a test what is read of its ledgers, and when.
type watchedStore struct {
	*storagetest.Model
	mu     sync.Mutex
	read   map[id.Tenant]int // events that were handed out
	placed map[id.Tenant]int // names that were looked up
	ahead  int               // events that were handed out and not looked up yet, the most at a time
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

// await waits until enough was read.
func (s *watchedStore) await(t *testing.T, what string, enough func() bool) {
	for end := time.Now().Add(2 * time.Minute); !s.has(enough); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("waited in vain until %s", what)
			return
		}
	}
}

// filled returns ledgers with so many events of each organization in a store whose
// counts begin now.
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

// While the first events of a ledger are being placed, those behind them are read and
// inspected already, but not many: memory does not grow with the ledger.
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

// A ledger is examined while another one is, and what is found is reported in the
// order of the store all the same.
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

// readAhead is how many events of a ledger Fsck may have read and not placed: those of the
// portions that wait, of the one that is placed, of the one that is read, and the names
// that are looked up together.
func readAhead() int { return (runtime.GOMAXPROCS(0)+4)*256 + 256 }
