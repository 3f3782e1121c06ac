package log_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// node is a process that shares its store.
type node struct {
	*world
	owns    map[id.Tenant]*atomic.Bool
	elapsed atomic.Int64 // of its steady clock
}

// newNodes returns two processes on a store. The first one owns both ledgers.
func newNodes(t *testing.T, store log.Store) (one, two *node) {
	t.Helper()
	w := newWorld(t, store)
	w.ledgers.Close()
	other := &world{t: t, store: store, keyring: w.keyring, anchors: t.TempDir(), agent: w.agent, fatal: w.fatal, Time: w.Time.Copy()}
	one, two = newNode(w), newNode(other)
	one.give(red, one)
	one.give(blue, one)
	one.spread(two)
	return one, two
}

// newNodesAndOlderStore returns two nodes that both know the anchors of one event in each ledger, their store, and
// its content at that time: a store that was rolled back.
func newNodesAndOlderStore(t *testing.T) (one, two *node, store, older *storagetest.Model) {
	t.Helper()
	store = storagetest.NewModel()
	one, two = newNodes(t, store)
	one.mustAppend(red, "a")
	one.mustAppend(blue, "a")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	return one, two, store, store.Reopen()
}

func newNode(w *world) *node {
	n := &node{world: w, owns: map[id.Tenant]*atomic.Bool{red: {}, blue: {}}}
	n.open(log.Options{Elapsed: n.timeElapsed, Owned: func(t id.Tenant) bool { return n.owns[t] != nil && n.owns[t].Load() }})
	return n
}

func (n *node) timeElapsed() time.Duration { return time.Duration(n.elapsed.Load()) }

// give releases a ledger from the node, cleanly, and gives it to another one.
func (n *node) give(t id.Tenant, to *node) {
	n.t.Helper()
	n.owns[t].Store(false)
	if err := n.release(n.t.Context(), t); err != nil {
		n.t.Error(err)
	}
	to.owns[t].Store(true)
}

func (n *node) release(ctx context.Context, t id.Tenant) error {
	return n.ledgers.Release(ctx, func(other id.Tenant) bool { return other == t })
}

// spread brings all anchors of the node to another one.
func (n *node) spread(to *node) {
	n.t.Helper()
	if err := to.ledgers.ReceiveAnchors(n.t.Context(), n.notes()); err != nil {
		n.t.Error(err)
	}
}

func (n *node) notes() (all []anchor.Note) {
	n.t.Helper()
	for note, err := range n.ledgers.AnchorNotes() {
		if err != nil {
			n.t.Error(err)
		}
		all = append(all, note)
	}
	return all
}

func (n *node) stored(t id.Tenant) storage.Head {
	n.t.Helper()
	head, err := n.store.Head(n.t.Context(), t)
	if err != nil {
		n.t.Fatal(err)
	}
	return head
}

func isNotOwner(err error) bool {
	return errors.Is(err, log.ErrNotOwner) && fault.Is(err, fault.Unavailable) && fault.Of(err).Code == "not_owner"
}

func TestOnlyTheOwnerAnswers(t *testing.T) {
	model := storagetest.NewModel()
	one, two := newNodes(t, model)
	one.mustAppend(red, "a")
	one.give(blue, two)
	digest := one.envelope(red, "a").Digest
	states := map[id.Tenant]*log.State{red: one.state(red), blue: two.state(blue)}
	calls := map[string]func(n *node, tenant id.Tenant) error{
		"append": func(n *node, tenant id.Tenant) error { _, err := n.append(tenant, "new"); return err },
		"state":  func(n *node, tenant id.Tenant) error { _, err := n.ledgers.State(t.Context(), tenant); return err },
		"append to": func(n *node, tenant id.Tenant) error {
			return n.ledgers.AppendTo(t.Context(), states[tenant], []log.Prepare{n.single(tenant, "newer", 0)})[0].Err
		},
		"replays": func(n *node, tenant id.Tenant) error {
			return n.ledgers.Replays(t.Context(), states[tenant], []log.Query{{Event: "a", Digest: digest}})[0].Err
		},
		"adopt": func(n *node, tenant id.Tenant) error {
			err := n.ledgers.Adopt(t.Context(), tenant, []byte("no note"))
			if !errors.Is(err, log.ErrNotOwner) {
				return nil
			}
			return err
		},
		"mark fault": func(n *node, tenant id.Tenant) error {
			if n.owns[tenant].Load() {
				return nil
			}
			return n.ledgers.MarkFault(t.Context(), tenant, log.Suspect, "test")
		},
	}
	for name, call := range calls {
		for _, tt := range []struct {
			by     *node
			tenant id.Tenant
			owns   bool
		}{{one, red, true}, {one, blue, false}, {two, red, false}, {two, blue, true}} {
			if err := call(tt.by, tt.tenant); tt.owns && err != nil || !tt.owns && !isNotOwner(err) {
				t.Errorf("%s of %d: got %v, owner: %v", name, tt.tenant, err, tt.owns)
			}
		}
	}
}

// A node that loses a new organization while founding it still creates it. The new owner continues.
func TestCreateForAnotherOwner(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(blue, "a")
	one.owns[third] = new(atomic.Bool)
	s, err := two.ledgers.Create(t.Context(), third, ledgertest.Genesis(third))
	if err != nil || s.Size() != 0 || s.Identity().Origin != ledgertest.Genesis(third).Origin {
		t.Fatalf("got %v", err)
	}
	if _, err := two.append(third, "a"); !isNotOwner(err) {
		t.Errorf("an event: got %v", err)
	}
	one.owns[third].Store(true)
	one.mustAppend(third, "a")
	if _, err := two.ledgers.Create(t.Context(), third, ledgertest.Genesis(third)); !fault.Is(err, fault.Conflict) {
		t.Errorf("again: got %v", err)
	}
	one.mustAppend(third, "b")
	one.mustAppend(blue, "b")
}

// Ledgers move back and forth while senders of both organizations are busy at both processes.
func TestReleaseWhileBusy(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	nodes := []*node{one, two}
	receipts := map[id.Tenant]map[string]log.Receipt{red: {}, blue: {}}
	var mu sync.Mutex
	var senders sync.WaitGroup
	ends := make(chan struct{})
	for sender := range 8 {
		tenant := []id.Tenant{red, blue}[sender%2]
		senders.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ends:
					return
				default:
				}
				name := fmt.Sprintf("e-%d-%d", sender, i)
				r, err := nodes[(sender/2+i)%2].append(tenant, name)
				if err != nil && !isNotOwner(err) {
					t.Errorf("%s: %v", name, err)
				}
				if err == nil {
					mu.Lock()
					receipts[tenant][name] = r
					mu.Unlock()
				}
			}
		})
	}
	owner := map[id.Tenant]*node{red: one, blue: one}
	for turn := range 40 {
		tenant := []id.Tenant{red, blue, red}[turn%3]
		from := owner[tenant]
		to := nodes[(turn+1)%2]
		if to == from {
			continue
		}
		from.owns[tenant].Store(false)
		if err := from.release(t.Context(), tenant); err != nil {
			t.Error(err)
		}
		head := from.stored(tenant)
		time.Sleep(2 * time.Millisecond)
		if later := from.stored(tenant); later != head {
			t.Errorf("the ledger goes on after its release: %d, then %d", head.Size, later.Size)
		}
		from.spread(to)
		to.owns[tenant].Store(true)
		owner[tenant] = to
		time.Sleep(2 * time.Millisecond)
	}
	close(ends)
	senders.Wait()
	for _, tenant := range []id.Tenant{red, blue} {
		if n := len(receipts[tenant]); n < 20 {
			t.Errorf("tenant %d: %d events only", tenant, n)
		}
		s := owner[tenant].state(tenant)
		for name, r := range receipts[tenant] {
			owner[tenant].holds(s, name, r)
		}
	}
	one.audit(nil)
}

// A store that hangs does not delay a release, and the append is answered when it ends.
func TestReleaseOfAnAppendThatHangs(t *testing.T) {
	model := storagetest.NewModel()
	one, two := newNodes(t, model)
	one.mustAppend(red, "a")
	hold := model.Hold()
	type result struct {
		log.Receipt
		error
	}
	answered := make(chan result, 1)
	go func() { r, err := one.append(red, "b"); answered <- result{r, err} }()
	for one.stored(red).Size < 2 { // the store has it; an append in flight could still be the first one
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	one.owns[red].Store(false)
	if err := one.release(ctx, red); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("release: got %v", err)
	}
	one.owns[red].Store(true) // again, while the append hangs
	if _, err := one.append(red, "too-early"); !fault.Is(err, fault.Unavailable) || errors.Is(err, log.ErrNotOwner) {
		t.Errorf("append behind one that hangs: got %v", err)
	}
	one.owns[red].Store(false)
	hold()
	two.owns[red].Store(true)
	got := <-answered
	if got.error != nil || got.Index != 1 {
		t.Errorf("got %d, %v; want the receipt of 1", got.Index, got.error)
	}
	one.owns[blue].Store(true)
	one.mustAppend(blue, "neighbour")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	two.holds(two.state(red), "b", got.Receipt)
	two.mustAppend(red, "c")
	two.give(red, one)
	one.mustAppend(red, "d")
}

// A node that releases a ledger has written the anchor of everything shown there. The other organization's anchor may
// be late.
func TestReleaseWritesAnchors(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(red, "a")
	one.mustAppend(red, "b")
	one.mustAppend(blue, "a")
	one.give(red, two)
	beside, err := anchor.OpenBeside(one.anchors)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	if shown, _ := beside.Find(ledgertest.Genesis(red).Origin); shown.Size != 2 {
		t.Errorf("got an anchor of %d events, want 2", shown.Size)
	}
}

// queries counts the calls of a store.
type queries struct {
	*storagetest.Model
	calls atomic.Int64
}

func (a *queries) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	a.calls.Add(1)
	return a.Model.Head(ctx, t)
}

func (a *queries) Append(batches []storage.Batch) storage.Pending {
	a.calls.Add(1)
	return a.Model.Append(batches)
}

func (a *queries) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	a.calls.Add(1)
	return a.Model.Get(ctx, t, kind, key)
}

func (a *queries) Barrier(ctx context.Context) error {
	a.calls.Add(1)
	return a.Model.Barrier(ctx)
}

func TestReleaseOfIdleLedgersAsksNothing(t *testing.T) {
	store := &queries{Model: storagetest.NewModel()}
	one, two := newNodes(t, store)
	one.mustAppend(red, "a")
	one.mustAppend(blue, "a")
	before := store.calls.Load()
	one.give(red, two)
	if n := store.calls.Load() - before; n > 0 {
		t.Errorf("the release of an idle ledger made %d calls", n)
	}
	before = store.calls.Load()
	one.mustAppend(blue, "b")
	if n := store.calls.Load() - before; n != 1 {
		t.Errorf("an event of the ledger that stayed made %d calls, want 1", n)
	}
}

// The new owner learns the anchors of the previous one, in time or late.
func TestTakeOverComparesWithTheAnchorsOfOthers(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			one, two, _, older := newNodesAndOlderStore(t)
			one.mustAppend(red, "lost")
			shown := bytes.Clone(one.state(red).Checkpoint())
			if err := one.ledgers.FlushAnchors(); err != nil {
				t.Fatal(err)
			}
			two.ledgers.Close()
			two.store = older
			two.open(log.Options{Owned: func(id.Tenant) bool { return true }})
			if late {
				two.mustAppend(blue, "b")
				two.mustAppend(red, "fork")
			}
			one.spread(two)
			two.refuses(red, "frozen")
			if got := two.state(red).Checkpoint(); !late && !bytes.Equal(got, shown) {
				t.Errorf("got checkpoint %q, want %q", got, shown)
			}
			two.mustAppend(blue, "c")
		})
	}
}

// awayStore is a store whose heads cannot be read for a while.
type awayStore struct {
	*storagetest.Model
	away atomic.Bool
}

func (s *awayStore) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if s.away.Load() {
		return storage.Head{}, storage.ErrUnavailable
	}
	return s.Model.Head(ctx, t)
}

// An anchor that arrives while the store is unavailable, as in a fail-over to an older one, is compared when the
// store is available again.
func TestAnchorComesWhileTheStoreIsAway(t *testing.T) {
	one, two, _, copied := newNodesAndOlderStore(t)
	older := &awayStore{Model: copied}
	one.mustAppend(red, "lost")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	two.ledgers.Close()
	two.store = older
	two.open(log.Options{Owned: func(id.Tenant) bool { return true }})
	two.state(red)
	two.state(blue)
	older.away.Store(true)
	if err := two.ledgers.ReceiveAnchors(t.Context(), one.notes()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("while it is away: got %v", err)
	}
	older.away.Store(false)
	one.spread(two) // as the other node does after an error
	two.refuses(red, "frozen")
	two.mustAppend(blue, "b")
}

// An anchor of a larger tree that the store contains is not a fault of the node that fell behind.
func TestLargerAnchorOfTheNewOwner(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(red, "a")
	two.owns[red].Store(true) // both own it
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	two.mustAppend(red, "b", "c")
	if err := two.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	two.spread(one)
	if f := one.state(red).Fault(); f.Level != log.Healthy {
		t.Errorf("got %+v", f)
	}
	one.mustAppend(red, "d")
	two.mustAppend(red, "e")
	one.audit(nil)
}

func TestLastShown(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	for i := range 300 {
		one.mustAppend(red, fmt.Sprint("shown-", i))
	}
	want := one.state(red)
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	one.mustAppend(red, "not-spread-yet")
	got, err := two.ledgers.LastShown(t.Context(), red)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Checkpoint(), want.Checkpoint()) || got.ConfigVersion() != want.ConfigVersion() {
		t.Errorf("got %q, want %q", got.Checkpoint(), want.Checkpoint())
	}
	if _, _, _, err := two.ledgers.Inclusion(t.Context(), got, 17, got.Size()); err != nil {
		t.Errorf("inclusion: %v", err)
	}
	if _, err := two.ledgers.State(t.Context(), red); !isNotOwner(err) {
		t.Errorf("the newest state: got %v", err)
	}
	if got, err := two.ledgers.LastShown(t.Context(), blue); err != nil || got.Size() != 0 {
		t.Errorf("the other organization: got %v", err)
	}
	if _, err := two.ledgers.LastShown(t.Context(), 99); !fault.Is(err, fault.NotFound) {
		t.Errorf("no ledger: got %v", err)
	}
	fresh := newNode(&world{t: t, store: one.store, keyring: one.keyring, anchors: t.TempDir(), agent: one.agent, fatal: one.fatal, Time: one.Time.Copy()})
	if _, err := fresh.ledgers.LastShown(t.Context(), red); !isNotOwner(err) {
		t.Errorf("without an anchor: got %v", err)
	}
}

// A store that lost a tree shown by another node has no last shown state of that log. The other organization's state
// is there.
func TestLastShownOfAnOlderStore(t *testing.T) {
	one, two, _, older := newNodesAndOlderStore(t)
	one.mustAppend(red, "lost")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	two.ledgers.Close()
	two.store = older
	two.open(log.Options{Owned: func(id.Tenant) bool { return false }})
	one.spread(two)
	if got, err := two.ledgers.LastShown(t.Context(), red); !isNotOwner(err) {
		t.Errorf("got %v, %v, want no state", got, err)
	}
	if got, err := two.ledgers.LastShown(t.Context(), blue); err != nil || got.Size() != 1 {
		t.Errorf("the other organization: got %v", err)
	}
}

// A fenced node rejects what it had accepted, and leaves the head to the new owner.
func TestFencedNodeGivesUp(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(red, "a")
	one.mustAppend(blue, "a")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	one.spread(two)
	prepare := one.single(red, "accepted", 0)
	_, err := one.ledgers.Append(t.Context(), red, func(ctx context.Context, s *log.State) (log.Submission, error) {
		two.owns[red].Store(true)
		two.mustAppend(red, "b")
		one.owns[red].Store(false)
		return prepare(ctx, s)
	})
	if !isNotOwner(err) {
		t.Errorf("got %v", err)
	}
	if got, want := two.state(red).Head(), two.stored(red); got != want || got.Size != 2 {
		t.Errorf("the head of the new owner is %+v, the stored one %+v", got, want)
	}
	one.mustAppend(blue, "b")
	two.mustAppend(red, "accepted")
}

// A successor of a frozen ledger belongs to the same owner, and finds its events.
func TestSuccessorHasTheSameOwner(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(red, "a")
	if err := one.ledgers.Freeze(t.Context(), red, "test"); err != nil {
		t.Fatal(err)
	}
	frozen := one.state(red)
	one.ledgers.Close()
	one.open(log.Options{Owned: func(t id.Tenant) bool { return t%1024 == red%1024 }})
	heir, err := one.ledgers.Succeed(t.Context(), frozen)
	if err != nil {
		t.Fatal(err)
	}
	successor := heir.Identity().Tenant
	if _, err := two.ledgers.State(t.Context(), successor); !isNotOwner(err) {
		t.Errorf("another process: got %v", err)
	}
	one.ledgers.Close()
	one.open(log.Options{Owned: func(t id.Tenant) bool { return t == successor }}) // as in a store of before
	known, err := one.replayed(successor, "a", "", one.envelope(red, "a").Digest)
	if err != nil || !known {
		t.Errorf("an event of the frozen ledger: got %v, %v", known, err)
	}
	if before, err := one.ledgers.Predecessor(t.Context(), heir); err != nil || before.Size() != 1 {
		t.Errorf("the predecessor: got %v", err)
	}
	if _, err := one.ledgers.State(t.Context(), blue); !isNotOwner(err) {
		t.Errorf("the other organization: got %v", err)
	}
}

// A ledger accepts its first event once another process has its first anchor, and waits for no later one.
func TestFirstAnchorBeforeTheFirstEvent(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(blue, "a")
	w.ledgers.Close()
	var fails error = errors.New("no other process answers")
	var given [][]byte
	o := log.Options{FirstAnchor: func(_ context.Context, checkpoint []byte) error {
		given = append(given, checkpoint)
		return fails
	}}
	w.open(o)
	for range 2 {
		if _, err := w.append(red, "too-early"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	}
	fails = nil
	w.mustAppend(red, "a", "b")
	if want := 3; len(given) != want {
		t.Errorf("asked %d times, want %d", len(given), want)
	}
	for _, note := range given {
		if c, err := w.state(red).OpenCheckpoint(note); err != nil || c.Size != 0 {
			t.Errorf("got a checkpoint of size %d, %v", c.Size, err)
		}
	}
	w.ledgers.Close()
	w.open(o)
	w.mustAppend(red, "c")
	w.mustAppend(blue, "b")
	if len(given) != 3 {
		t.Errorf("asked %d times after the first events", len(given))
	}
}

// A ledger that moves before its new owner has its first anchor is not treated as a ledger without an anchor: the
// anchors of the other processes are fetched first. The ledger waits while they cannot be fetched, and is read-only
// if they have none.
func TestAnchorsOfOthersBeforeReadOnly(t *testing.T) {
	one, two := newNodes(t, storagetest.NewModel())
	one.mustAppend(red, "a")
	one.mustAppend(blue, "a")
	if err := one.ledgers.FlushAnchors(); err != nil {
		t.Fatal(err)
	}
	two.ledgers.Close()
	two.anchors = t.TempDir()
	var fails error = errors.New("no other process answers")
	spread, queries := func() {}, 0
	two.open(log.Options{Owned: func(id.Tenant) bool { return true }, FetchAnchors: func(context.Context) error {
		if queries++; fails == nil {
			spread()
		}
		return fails
	}})
	if _, err := two.append(red, "b"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("while the anchors can't be fetched: got %v", err)
	}
	fails = nil
	two.refuses(blue, "read_only")
	spread = func() { one.spread(two) }
	two.mustAppend(red, "b")
	if queries != 3 {
		t.Errorf("asked %d times, want 3", queries)
	}
	two.mustAppend(red, "c")
	if queries != 3 {
		t.Errorf("asked %d times for a ledger with an anchor", queries-3)
	}
}
