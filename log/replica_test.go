package log_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/replica"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// readers returns the ledgers as readers at a node see them. Its waits end at once, and are added to waited.
func (n *node) readers(waited *time.Duration, anchorFirst bool) *replica.Ledgers {
	return replica.New(replica.Options{Ledgers: n.ledgers, Store: n.store, Anchors: n.folder, Elapsed: n.timeElapsed,
		Reader:      log.NewReader(log.Options{Store: n.store, Keyring: n.keyring, Anchors: n.folder}),
		AnchorFirst: func() bool { return anchorFirst },
		Wait: func(ctx context.Context, d time.Duration) error {
			*waited += max(d, 0)
			return ctx.Err()
		}})
}

func isUnconfirmed(err error) bool {
	return fault.Is(err, fault.Unavailable) && fault.Of(err).Code == "unavailable"
}

// A node that does not own a ledger shows its newest state, with proofs, and disturbs nobody. It waits only if the
// owner may not have shown that state yet.
func TestStandIn(t *testing.T) {
	for name, c := range map[string]struct {
		spread, anchorFirst bool
		waits               time.Duration
	}{
		"newer than the anchor":                  {false, false, takeover.Sight},
		"anchored by the owner":                  {true, false, 0},
		"anchored before the owner has shown it": {true, true, takeover.Sight},
	} {
		one, two := newNodes(t, storagetest.NewModel())
		one.mustAppend(red, "a", "b")
		if err := one.ledgers.FlushAnchors(); err != nil {
			t.Fatal(err)
		}
		one.spread(two)
		one.mustAppend(red, "c")
		if err := one.ledgers.FlushAnchors(); err != nil {
			t.Fatal(err)
		}
		if c.spread {
			one.spread(two)
		}
		want, stored, neighbour := one.state(red), one.stored(red), one.stored(blue)
		var waited time.Duration
		readers := two.readers(&waited, c.anchorFirst)
		if _, err := readers.State(t.Context(), red); !isNotOwner(err) {
			t.Errorf("%s: without need: got %v", name, err)
		}
		ctx := takeover.WithStandIn(t.Context())
		for range 2 {
			s, err := readers.State(ctx, red)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !bytes.Equal(s.Checkpoint(), want.Checkpoint()) || s.ConfigVersion() != want.ConfigVersion() {
				t.Errorf("%s: got %q, want %q", name, s.Checkpoint(), want.Checkpoint())
			}
			if _, _, _, err := readers.Inclusion(ctx, s, 1, s.Size()); err != nil {
				t.Errorf("%s: inclusion: %v", name, err)
			}
		}
		if waited != c.waits {
			t.Errorf("%s: waited %v, want %v", name, waited, c.waits)
		}
		if size, _ := two.folder.Size(ledgertest.Genesis(red).Origin); size != 3 {
			t.Errorf("%s: the anchor is at %d, want 3", name, size)
		}
		if one.stored(red) != stored || one.stored(blue) != neighbour {
			t.Errorf("%s: the stored heads moved", name)
		}
		one.mustAppend(red, "d")
		if s, err := readers.State(ctx, red); err != nil || s.Size() != 4 {
			t.Errorf("%s: a newer head: got %v", name, err)
		}
		if s, err := readers.State(ctx, blue); err != nil || s.Size() != 0 {
			t.Errorf("%s: the other organization: got %v", name, err)
		}
		if _, err := readers.State(ctx, 99); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: no ledger: got %v", name, err)
		}
		two.spread(one)
		one.mustAppend(red, "e")
		one.give(red, two)
		two.mustAppend(red, "f")
	}
}

// A store that was rolled back to before a tree that was shown is refused, also where it was shown here.
func TestStandInRefusesAnOlderStore(t *testing.T) {
	one, two, model, older := newNodesAndOlderStore(t)
	one.mustAppend(red, "b")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	ctx := takeover.WithStandIn(t.Context())
	var waited time.Duration
	two.store = older
	late := two.readers(&waited, false)
	if s, err := late.State(ctx, red); err != nil || s.Size() != 1 {
		t.Errorf("before the anchor has come: got %v", err)
	}
	one.spread(two)
	for name, readers := range map[string]*replica.Ledgers{"shown before": late, "never shown": two.readers(&waited, false)} {
		if _, err := readers.State(ctx, red); !isUnconfirmed(err) {
			t.Errorf("%s: got %v", name, err)
		}
		if s, err := readers.State(ctx, blue); err != nil || s.Size() != 1 {
			t.Errorf("%s: the other organization: got %v", name, err)
		}
	}
	fresh := newNode(&world{t: t, store: model, keyring: one.keyring, anchors: t.TempDir(), agent: one.agent, fatal: one.fatal, Time: one.Time.Copy()})
	if _, err := fresh.readers(&waited, false).State(ctx, red); !isUnconfirmed(err) {
		t.Errorf("without an anchor: got %v", err)
	}
	two.store = model
	if s, err := two.readers(&waited, false).State(ctx, red); err != nil || s.Size() != 2 {
		t.Errorf("the store is back: got %v", err)
	}
}

// A head that is visible and not durable yet is not shown.
func TestStandInWaitsForDurability(t *testing.T) {
	model := storagetest.NewModel()
	one, two := newNodes(t, model)
	one.mustAppend(red, "a")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	release := model.Hold()
	go func() { _, _ = one.append(red, "b") }()
	for one.stored(red).Size < 2 {
		time.Sleep(time.Millisecond)
	}
	var waited time.Duration
	readers := two.readers(&waited, false)
	shown := make(chan id.Index, 1)
	go func() {
		s, err := readers.State(takeover.WithStandIn(t.Context()), red)
		if err != nil {
			t.Error(err)
			shown <- 0
			return
		}
		shown <- s.Size()
	}()
	select {
	case n := <-shown:
		t.Errorf("size %d is shown before it is durable", n)
	case <-time.After(50 * time.Millisecond):
	}
	if release(); t.Failed() {
		return
	}
	if n := <-shown; n != 2 {
		t.Errorf("got size %d", n)
	}
}

// failingOver is a store that becomes an older one before its next barrier.
type failingOver struct {
	*storagetest.Model
	older *storagetest.Model // nil afterwards
}

func (s *failingOver) Barrier(ctx context.Context) error {
	if s.older != nil {
		s.Model, s.older = s.older, nil
	}
	return s.Model.Barrier(ctx)
}

// A head that was read before the store failed over to an older one is not shown, and is no anchor.
func TestStandInReadsAgainBehindTheBarrier(t *testing.T) {
	one, two, model, older := newNodesAndOlderStore(t)
	one.mustAppend(red, "b")
	two.store = &failingOver{Model: model, older: older}
	var waited time.Duration
	readers := two.readers(&waited, false)
	ctx := takeover.WithStandIn(t.Context())
	if s, err := readers.State(ctx, red); !isUnconfirmed(err) {
		t.Errorf("got %v, %v", s, err)
	}
	for _, tenant := range []id.Tenant{red, blue} {
		if s, err := readers.State(ctx, tenant); err != nil || s.Size() != 1 {
			t.Errorf("afterwards: got %v", err)
		}
	}
}

// slowBarrier is a store with barriers that take a while, and are counted.
type slowBarrier struct {
	*storagetest.Model
	barriers atomic.Int64
}

func (s *slowBarrier) Barrier(ctx context.Context) error {
	s.barriers.Add(1)
	time.Sleep(100 * time.Millisecond)
	return s.Model.Barrier(ctx)
}

// Requests that come together read the store together. Each shows a state that was read after it came.
func TestStandInReadsTogether(t *testing.T) {
	store := &slowBarrier{Model: storagetest.NewModel()}
	one, two := newNodes(t, store)
	one.mustAppend(red, "a")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	began := time.Now()
	readers := replica.New(replica.Options{Ledgers: two.ledgers, Store: store, Anchors: two.folder,
		Reader:      log.NewReader(log.Options{Store: store, Keyring: two.keyring, Anchors: two.folder}),
		AnchorFirst: func() bool { return true }, Elapsed: func() time.Duration { return time.Since(began) },
		Wait: func(context.Context, time.Duration) error { return nil }})
	before := store.barriers.Load()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			s, err := readers.State(takeover.WithStandIn(t.Context()), red)
			if err != nil || s.Size() != 1 {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if n := store.barriers.Load() - before; n > 50 {
		t.Errorf("%d barriers for 100 requests", n)
	}
	one.mustAppend(red, "b")
	if s, err := readers.State(takeover.WithStandIn(t.Context()), red); err != nil || s.Size() != 2 {
		t.Errorf("afterwards: got %v", err)
	}
	if got := readers.StoodIn(); got != 101 {
		t.Errorf("%d reads are counted, want 101", got)
	}
}

// silentStore holds back the outcomes of appends that took effect.
type silentStore struct {
	*storagetest.Model
	silent chan struct{} // nil: it does not
}

func (s *silentStore) Append(batches []storage.Batch) storage.Pending {
	return silentPending{s.Model.Append(batches), s.silent}
}

type silentPending struct {
	storage.Pending
	silent chan struct{}
}

func (p silentPending) Wait() []error {
	if p.silent != nil {
		<-p.silent
	}
	return p.Pending.Wait()
}

// An owner that does not know the outcome of an append shows nothing after a while, because a stand-in may have shown
// the result. The other ledgers of the owner are shown.
func TestOwnerIsPatient(t *testing.T) {
	store := &silentStore{Model: storagetest.NewModel()}
	one, two := newNodes(t, store)
	one.mustAppend(red, "a")
	one.mustAppend(blue, "a")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	store.silent = make(chan struct{})
	answered := make(chan error, 1)
	go func() { _, err := one.append(red, "b"); answered <- err }()
	for one.stored(red).Size < 2 {
		time.Sleep(time.Millisecond)
	}
	var waited time.Duration
	owner, other := one.readers(&waited, false), two.readers(&waited, false)
	if s, err := owner.State(t.Context(), red); err != nil || s.Size() != 1 {
		t.Errorf("at first: got %v", err)
	}
	one.elapsed.Add(int64(takeover.Patience))
	if s, err := other.State(takeover.WithStandIn(t.Context()), red); err != nil || s.Size() != 2 || waited != takeover.Sight {
		t.Errorf("the stand-in: got %v after %v", err, waited)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := owner.State(takeover.WithStandIn(ctx), red); !isUnconfirmed(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an append is late: got %v, %v", s, err)
	}
	if s, err := owner.State(t.Context(), blue); err != nil || s.Size() != 1 {
		t.Errorf("the other organization: got %v", err)
	}
	close(store.silent)
	if s, err := owner.State(t.Context(), red); err != nil || s.Size() != 2 {
		t.Errorf("the outcome is known: got %v", err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	store.silent = nil
	one.mustAppend(red, "c")
	one.elapsed.Add(int64(takeover.Patience))
	if s, err := owner.State(t.Context(), red); err != nil || s.Size() != 3 {
		t.Errorf("afterwards: got %v", err)
	}
}

// Tiles that were shown are known without their owner. What may be newer than that is not.
func TestShownTrees(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(red, "a", "b")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	one.mustAppend(red, "c")
	var waited time.Duration
	readers := two.readers(&waited, false)
	size := func(tenant id.Tenant, least id.Index) id.Index {
		s, err := readers.Shown(t.Context(), tenant, func(n id.Index) bool { return n >= least })
		if err != nil {
			t.Fatal(err)
		}
		if s == nil {
			return 0
		}
		return s.Size()
	}
	for _, c := range []struct{ least, want id.Index }{{3, 0}, {1, 2}, {2, 2}, {3, 0}} { // the first look reads the store
		if got := size(red, c.least); got != c.want {
			t.Errorf("for %d: got %d, want %d", c.least, got, c.want)
		}
	}
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	if got := size(red, 3); got != 3 {
		t.Errorf("after the anchor has come: got %d, want 3", got)
	}
	if got := size(blue, 1); got != 0 {
		t.Errorf("the other organization: got %d", got)
	}
	if _, err := readers.Shown(t.Context(), 99, func(id.Index) bool { return true }); !fault.Is(err, fault.NotFound) {
		t.Errorf("no ledger: got %v", err)
	}
	if waited != 0 {
		t.Errorf("waited %v", waited)
	}
}

// heldStore holds the reads of heads.
type heldStore struct {
	*storagetest.Model
	held    chan struct{} // nil: it does not
	reading atomic.Int64
}

func (s *heldStore) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if s.held != nil {
		s.reading.Add(1)
		<-s.held
	}
	return s.Model.Head(ctx, t)
}

// Strangers who ask for the tiles of many logs at once do not make a node read all of these. What it has read it shows.
func TestShownReadsFewAtOnce(t *testing.T) {
	store := &heldStore{Model: storagetest.NewModel()}
	one, two := newNodes(t, store)
	one.mustAppend(red, "a")
	one.mustAppend(blue, "a")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	var waited time.Duration
	readers := two.readers(&waited, false)
	shown := func(tenant id.Tenant) *log.State {
		s, err := readers.Shown(t.Context(), tenant, func(n id.Index) bool { return n > 0 })
		if err != nil {
			t.Error(err)
		}
		return s
	}
	shown(blue)
	store.held = make(chan struct{})
	var found, none atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if shown(red) == nil {
				none.Add(1)
			} else {
				found.Add(1)
			}
		})
	}
	for store.reading.Load()+none.Load() < 100 {
		time.Sleep(time.Millisecond)
	}
	if n := store.reading.Load(); n == 0 || n > 20 {
		t.Errorf("%d reads at once", n)
	}
	if shown(blue) == nil {
		t.Error("a tree that was read before is not known")
	}
	close(store.held)
	all.Wait()
	if found.Load() != store.reading.Load() || shown(red) == nil {
		t.Errorf("%d reads, %d found", store.reading.Load(), found.Load())
	}
}

// A successor in a store of before may belong to another node than its predecessor. Each node shows both.
func TestSuccessorOfAnotherOwner(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(red, "a")
	if err := one.ledgers.Freeze(t.Context(), red, "test"); err != nil {
		t.Fatal(err)
	}
	frozen := one.state(red)
	one.ledgers.Close()
	one.open(log.Options{})
	heir, err := one.ledgers.Succeed(t.Context(), frozen)
	if err != nil {
		t.Fatal(err)
	}
	successor := heir.Identity().Tenant
	one.inHeir(red, successor, "b")
	one.ledgers.Close()
	one.open(log.Options{Elapsed: one.timeElapsed, Owned: func(t id.Tenant) bool { return t == red }})
	one.spread(two)
	two.ledgers.Close()
	two.open(log.Options{Elapsed: two.timeElapsed, Owned: func(t id.Tenant) bool { return t == successor }})
	two.inHeir(red, successor, "c")
	for name, n := range map[string]*node{"owner of the frozen log": one, "owner of the successor": two} {
		var waited time.Duration
		readers := n.readers(&waited, false)
		next, err := readers.Successor(t.Context(), frozen)
		if err != nil || next == nil || next.Identity().Tenant != successor || next.Size() != 2 {
			t.Fatalf("%s: the successor: got %v, %v", name, next, err)
		}
		before, err := readers.Predecessor(t.Context(), next)
		if err != nil || before.Identity().Tenant != red || before.Size() != 1 || before.Fault().Level != log.Frozen {
			t.Errorf("%s: the predecessor: got %v, %v", name, before, err)
		}
		if s, err := readers.Successor(t.Context(), next); s != nil || err != nil {
			t.Errorf("%s: the successor of the successor: got %v, %v", name, s, err)
		}
	}
	two.inHeir(red, successor, "d")
	if s := two.state(successor); s.Size() != 3 || s.Fault().Level != log.Healthy {
		t.Errorf("got %d, %+v", s.Size(), s.Fault())
	}
}
