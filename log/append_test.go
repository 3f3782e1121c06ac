package log_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

func TestAppendIsDurableChainedAndProvable(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	acknowledged := w.burst(600, "e")
	for _, tenant := range []id.Tenant{red, blue} {
		if got := len(acknowledged[tenant]); got != 600 {
			t.Errorf("tenant %d: got %d acknowledged, want 600", tenant, got)
		}
		if c := w.checkpoint(tenant); c.Size != 600 || c.Origin != ledgertest.Genesis(tenant).Origin {
			t.Errorf("tenant %d: checkpoint %+v", tenant, c)
		}
		for name, r := range acknowledged[tenant] {
			if !r.ChainValid {
				t.Errorf("%s: chain_valid is false", name)
			}
		}
	}
	w.audit(acknowledged)
}

func TestEmptyLedger(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	s := w.state(red)
	if s.Size() != 0 || s.Root() != tlog.EmptyRoot() || s.Last() != event.Genesis(s.Identity().Origin) || s.ConfigVersion() != 1 {
		t.Errorf("got %d, %v, %v, %d", s.Size(), s.Root(), s.Last(), s.ConfigVersion())
	}
}

func TestCreateTwice(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	_, err := w.ledgers.Create(t.Context(), red, ledgertest.Genesis(red))
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("same tenant and origin: got %v, want a conflict", err)
	}
	_, err = w.ledgers.Create(t.Context(), 99, ledgertest.Genesis(red))
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("an origin that was shown: got %v, want a conflict", err)
	}
}

func TestUnknownTenant(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	if _, err := w.ledgers.State(t.Context(), 99); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestOneOfManyIdenticalEventsIsCreated(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	e := w.envelope(red, "same")
	var created, duplicate atomic.Int32
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			_, err := w.ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
				return log.Submission{Drafts: []log.Draft{w.draft(s, e, 0)}}, nil
			})
			switch {
			case err == nil:
				created.Add(1)
			case errors.Is(err, log.ErrDuplicate):
				duplicate.Add(1)
				known, err := w.replayed(red, e.EventID, "", e.Digest)
				if err != nil || !known {
					t.Errorf("after ErrDuplicate: replayed %v, %v", known, err)
				}
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if created.Load() != 1 || duplicate.Load() != 39 {
		t.Errorf("got %d created and %d duplicates, want 1 and 39", created.Load(), duplicate.Load())
	}
	if got := w.state(blue).Size(); got != 0 {
		t.Errorf("the other organization has %d events", got)
	}
	w.audit(nil)
}

func TestReplayed(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "known")
	known, other := w.envelope(red, "known"), w.envelope(red, "other")
	tests := []struct {
		name   string
		tenant id.Tenant
		event  id.Event
		key    string
		digest id.Hash
		want   bool
		kind   fault.Kind
	}{
		{"same event", red, "known", "", known.Digest, true, 0},
		{"same event, its key", red, "known", "idem-known", known.Digest, true, 0},
		{"same event, a key never seen", red, "known", "new", known.Digest, true, 0},
		{"another digest", red, "known", "", other.Digest, false, fault.Invalid},
		{"key of another event", red, "other", "idem-known", other.Digest, false, fault.Invalid},
		{"unknown event and key", red, "other", "idem-other", other.Digest, false, 0},
		{"known only to the other organization", blue, "known", "idem-known", known.Digest, false, 0},
	}
	var queries []log.Query // all events of the first organization at once
	for _, tt := range tests {
		if tt.tenant == red {
			queries = append(queries, log.Query{Event: tt.event, Key: tt.key, IngestKey: "ik_test", Digest: tt.digest})
		}
	}
	together := w.ledgers.Replays(t.Context(), w.state(red), queries)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.replayed(tt.tenant, tt.event, tt.key, tt.digest)
			if got != tt.want || (tt.kind == 0) != (err == nil) || (err != nil && !fault.Is(err, tt.kind)) {
				t.Errorf("got %v, %v; want %v, kind %d", got, err, tt.want, tt.kind)
			}
			if tt.tenant != red {
				return
			}
			r := together[0]
			together = together[1:]
			if r.Known != got || (r.Err == nil) != (err == nil) || err != nil && !fault.Is(r.Err, tt.kind) {
				t.Errorf("asked together: got %+v, want %v, %v", r, got, err)
			}
		})
	}
}

func TestMonthlyCapIsExact(t *testing.T) {
	const limit = 37
	w := newWorld(t, storagetest.NewModel())
	var created, refused atomic.Int32
	var refusedName atomic.Value
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			_, err := w.ledgers.Append(t.Context(), red, w.single(red, fmt.Sprint("e", i), limit))
			switch {
			case err == nil:
				created.Add(1)
			case fault.Is(err, fault.PlanLimit) && fault.Of(err).Code == "plan_limit":
				refused.Add(1)
				refusedName.Store(fmt.Sprint("e", i))
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if created.Load() != limit || refused.Load() != 100-limit {
		t.Errorf("got %d created, %d refused, want %d and %d", created.Load(), refused.Load(), limit, 100-limit)
	}
	w.mustAppend(blue, "unlimited")
	w.Pass(31 * 24 * time.Hour)
	name, _ := refusedName.Load().(string)
	if _, err := w.ledgers.Append(t.Context(), red, w.single(red, name, limit)); err != nil {
		t.Errorf("the refused event, sent again in the next month: %v", err)
	}
	w.reopen(w.store)
	if got := w.state(red).Used(id.InstantOf(w.Clock())); got != 1 {
		t.Errorf("used in the new month after a restart: got %d, want 1", got)
	}
	w.audit(nil)
}

func TestReceivedAtNeverFalls(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	first, err := w.append(red, "first")
	if err != nil {
		t.Fatal(err)
	}
	w.Pass(-5 * time.Second)
	second, err := w.append(red, "second")
	if err != nil {
		t.Fatal(err)
	}
	if second.ReceivedAt != first.ReceivedAt {
		t.Errorf("got %v after %v", second.ReceivedAt, first.ReceivedAt)
	}
}

// configure appends an event that increments the config version.
func configure(w *world, tenant id.Tenant, name string, changes ...storage.Change) error {
	e := w.envelope(tenant, name)
	_, err := w.ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{w.draft(s, e, 0)}, Changes: changes, Reconfigures: true}, nil
	})
	return err
}

func TestNoEventLandsUnderAnOlderConfiguration(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	release := model.Hold() // the change is sequenced but not durable
	changed := make(chan error, 1)
	go func() { changed <- configure(w, red, "change") }()
	var prepared atomic.Int32
	var versions sync.Map
	landed := make(chan error, 1)
	e := w.envelope(red, "late")
	go func() {
		_, err := w.ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
			versions.Store(prepared.Add(1), s.ConfigVersion())
			return log.Submission{Drafts: []log.Draft{w.draft(s, e, 0)}}, nil
		})
		landed <- err
	}()
	release()
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	if err := <-landed; err != nil {
		t.Fatal(err)
	}
	s := w.state(red)
	changeAt, err := w.ledgers.Find(t.Context(), s, "change")
	if err != nil {
		t.Fatal(err)
	}
	lateAt, err := w.ledgers.Find(t.Context(), s, "late")
	if err != nil {
		t.Fatal(err)
	}
	last, _ := versions.Load(prepared.Load())
	if want := uint64(2); lateAt > changeAt && last != want {
		t.Errorf("the event above the change was prepared under version %v, want %d", last, want)
	}
	if s.ConfigVersion() != 2 || w.state(blue).ConfigVersion() != 1 {
		t.Errorf("config versions %d and %d, want 2 and 1", s.ConfigVersion(), w.state(blue).ConfigVersion())
	}
}

func TestStaleSubmissionIsPreparedAgain(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	e := w.envelope(red, "event")
	var seen []uint64
	_, err := w.ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
		seen = append(seen, s.ConfigVersion())
		if len(seen) == 1 {
			if err := configure(w, red, "meanwhile"); err != nil {
				return log.Submission{}, err
			}
		}
		return log.Submission{Drafts: []log.Draft{w.draft(s, e, 0)}}, nil
	})
	if err != nil || fmt.Sprint(seen) != "[1 2]" {
		t.Errorf("prepared under %v, %v; want [1 2]", seen, err)
	}
}

func TestStaleRecordVersionIsPreparedAgain(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	put := storage.Change{Kind: "thing", Key: "k", Value: []byte("1")}
	if err := configure(w, red, "first", put); err != nil {
		t.Fatal(err)
	}
	e := w.envelope(red, "second")
	tries := 0
	_, err := w.ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
		c := put
		if tries++; tries > 1 {
			c.If = 1
		}
		return log.Submission{Drafts: []log.Draft{w.draft(s, e, 0)}, Changes: []storage.Change{c}, Reconfigures: true}, nil
	})
	if err != nil || tries != 2 {
		t.Errorf("got %v after %d tries, want success after 2", err, tries)
	}
	w.mustAppend(red, "after")
	w.audit(nil)
}

func TestPrepareErrorStoresNothing(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	want := errors.New("no")
	_, err := w.ledgers.Append(t.Context(), red, func(context.Context, *log.State) (log.Submission, error) {
		return log.Submission{}, want
	})
	if !errors.Is(err, want) || w.state(red).Size() != 0 {
		t.Errorf("got %v, size %d", err, w.state(red).Size())
	}
}

func TestQueueBounds(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.ledgers.Close()
	w.open(log.Options{MaxWaiting: 8, MaxWaitingTenant: 4})
	w.state(red)
	w.state(blue)
	release := model.Hold()
	var overloaded, created atomic.Int32
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			_, err := w.append(red, fmt.Sprint("e", i))
			switch {
			case err == nil:
				created.Add(1)
			case fault.Is(err, fault.Overloaded):
				overloaded.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	for overloaded.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	release()
	group.Wait()
	if got := int32(w.state(red).Size()); got != created.Load() {
		t.Errorf("got %d stored, %d acknowledged", got, created.Load())
	}
	w.audit(nil)
}

// Organizations that fill the queue do not exclude an organization with nothing waiting.
func TestFullQueueTakesWhoHasNothingInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := storagetest.NewModel()
		w := newWorld(t, model)
		w.ledgers.Close()
		w.open(log.Options{MaxWaiting: 4, MaxWaitingTenant: 8})
		w.state(red)
		w.state(blue)
		release := model.Hold()
		results := make(chan error, 100)
		for i := range 64 {
			go func() { results <- second(w.append(red, fmt.Sprint("e", i))) }()
		}
		synctest.Wait()
		if len(results) == 0 {
			t.Fatal("the queue took everything")
		}
		for range len(results) {
			if err := <-results; !fault.Is(err, fault.Overloaded) {
				t.Errorf("got %v, want overloaded", err)
			}
		}
		go func() { results <- second(w.append(blue, "quiet")) }()
		synctest.Wait()
		release()
		synctest.Wait()
		for range len(results) {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		w.audit(nil)
		w.ledgers.Close()
	})
}

func TestNothingIsShownBeforeItIsDurable(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.mustAppend(red, "first")
	release := model.Hold()
	done := make(chan error, 1)
	go func() { done <- second(w.append(red, "second")) }()
	for { // until the append is applied, according to the store
		head, err := model.Head(t.Context(), red)
		if err != nil {
			t.Fatal(err)
		}
		if head.Size == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s := w.state(red)
	if s.Size() != 1 {
		t.Errorf("published size is %d before the append is durable", s.Size())
	}
	if _, err := w.ledgers.Find(t.Context(), s, "second"); !fault.Is(err, fault.NotFound) {
		t.Errorf("find: got %v, want not found", err)
	}
	e := w.envelope(red, "second")
	if known, err := w.replayed(red, "second", "", e.Digest); known || err != nil {
		t.Errorf("replayed: got %v, %v before the append is durable", known, err)
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.state(red).Size(); got != 2 {
		t.Errorf("got size %d, want 2", got)
	}
}

func second[A any](_ A, err error) error { return err }

func TestLedgersAreDroppedAndReadBack(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.ledgers.Close()
	w.open(log.Options{MaxResident: 1})
	acknowledged := w.burst(300, "e")
	if got := len(acknowledged[red]) + len(acknowledged[blue]); got != 600 {
		t.Errorf("got %d acknowledged, want 600", got)
	}
	w.audit(acknowledged)
}

// A state may outlive its ledger's time in memory. A caller that holds it appends to the ledger that was loaded
// again.
func TestStateOutlivesItsLedger(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.ledgers.Close()
	w.open(log.Options{MaxResident: 1})
	old := w.state(red)
	w.state(blue)
	if _, err := w.ledgers.Create(t.Context(), third, ledgertest.Genesis(third)); err != nil { // evicts red
		t.Fatal(err)
	}
	for n, want := range []error{nil, log.ErrDuplicate} {
		if got := w.ledgers.AppendTo(t.Context(), old, []log.Prepare{w.single(red, "e", 0)})[0]; !errors.Is(got.Err, want) {
			t.Errorf("append %d: got %v, want %v", n, got.Err, want)
		}
	}
	queries := []log.Query{{Event: "e", Digest: w.envelope(red, "e").Digest}}
	if got := w.ledgers.Replays(t.Context(), old, queries)[0]; !got.Known || got.Err != nil {
		t.Errorf("replay: got %+v", got)
	}
	if got := w.state(red).Size(); got != 1 {
		t.Errorf("got size %d, want 1", got)
	}
}

func TestCancelledCallerLosesNothing(t *testing.T) {
	model := storagetest.NewModel()
	w := newWorld(t, model)
	w.state(red)
	release := model.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := w.ledgers.Append(ctx, red, w.single(red, "e", 0))
	if !fault.Is(err, fault.OutcomeUnknown) {
		t.Errorf("got %v, want outcome unknown", err)
	}
	release()
	if err := second(w.append(red, "e")); err != nil && !errors.Is(err, log.ErrDuplicate) {
		t.Errorf("retry: %v", err)
	}
	if got := w.state(red).Size(); got != 1 {
		t.Errorf("got size %d, want 1", got)
	}
}

func TestCloseRefusesAndDrains(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	acknowledged := w.burst(50, "e")
	if err := w.ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.append(red, "late"); !fault.Is(err, fault.Overloaded) {
		t.Errorf("after Close: got %v, want overloaded", err)
	}
	w.open(log.Options{})
	w.audit(acknowledged)
}

func TestAppendAllKeepsTheOrder(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.mustAppend(red, "known")
	no := errors.New("no")
	var prepares []log.Prepare
	for i := range 300 {
		prepares = append(prepares, w.single(red, fmt.Sprint("e", i), 0))
	}
	prepares[7] = w.single(red, "known", 0)
	prepares[9] = func(context.Context, *log.State) (log.Submission, error) { return log.Submission{}, no }
	prepares[11] = w.single(red, "e10", 0)
	outcomes := w.ledgers.AppendAll(t.Context(), red, prepares)
	next := id.Index(1)
	for i, o := range outcomes {
		switch i {
		case 7, 11:
			if !errors.Is(o.Err, log.ErrDuplicate) {
				t.Errorf("line %d: got %v, want a duplicate", i, o.Err)
			}
		case 9:
			if !errors.Is(o.Err, no) {
				t.Errorf("line %d: got %v", i, o.Err)
			}
		default:
			if o.Err != nil || o.Receipts[0].Index != next {
				t.Fatalf("line %d: got %+v, want index %d", i, o, next)
			}
			next++
		}
	}
	w.audit(nil)
}

func TestCounterNames(t *testing.T) {
	for _, year := range []int{0, 7, 1970, 2026, 2100, 9999} {
		for ofYear := 1; ofYear <= 12; ofYear++ {
			if got, want := log.CounterOf(year, ofYear), fmt.Sprintf("events/%04d-%02d", year, ofYear); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

// An idempotency key belongs to its ingest key. One that was stored before that rule belongs to the ingest key of its
// event.
func TestIdempotencyKeysAreOfIngestKeys(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	put := func(name, ingestKey, key string, formerly bool) id.Hash {
		e := w.envelope(red, name)
		a := w.agent.Attestation(e)
		a.IngestKeyID, a.IdempotencyKey = ingestKey, key
		_, err := w.ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
			d := log.NewDraft(s.Identity(), e, a)
			if formerly {
				d.IdempotencyKey = key
			}
			return log.Submission{Drafts: []log.Draft{d}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return e.Digest
	}
	first := put("first", "ik_1", "k", false)
	second := put("second", "ik_2", "k", false)
	former := put("former", "ik_1", "old", true)
	other := w.envelope(red, "other").Digest
	for name, c := range map[string]struct {
		event          id.Event
		ingestKey, key string
		digest         id.Hash
		want           bool
		kind           fault.Kind
	}{
		"the first's":                          {"first", "ik_1", "k", first, true, 0},
		"the second's":                         {"second", "ik_2", "k", second, true, 0},
		"under the other's key":                {"first", "ik_2", "k", first, false, fault.Invalid},
		"another event of the first":           {"other", "ik_1", "k", other, false, fault.Invalid},
		"another event of the second":          {"other", "ik_2", "k", other, false, fault.Invalid},
		"a third's":                            {"other", "ik_3", "k", other, false, 0},
		"one of before":                        {"former", "ik_1", "old", former, true, 0},
		"one of before, with another event":    {"other", "ik_1", "old", other, false, fault.Invalid},
		"one of before, of another ingest key": {"other", "ik_2", "old", other, false, 0},
		"the event of before, from another":    {"former", "ik_2", "old", former, true, 0},
	} {
		queries := []log.Query{{Event: c.event, Key: c.key, IngestKey: c.ingestKey, Digest: c.digest}}
		got := w.ledgers.Replays(t.Context(), w.state(red), queries)[0]
		if got.Known != c.want && c.kind == 0 || (c.kind == 0) != (got.Err == nil) || c.kind != 0 && !fault.Is(got.Err, c.kind) {
			t.Errorf("%s: got %+v", name, got)
		}
		if got := w.ledgers.Replays(t.Context(), w.state(blue), queries)[0]; got.Known || got.Err != nil {
			t.Errorf("%s, in the other organization: got %+v", name, got)
		}
	}
	if _, err := w.append(red, "next"); err != nil {
		t.Error(err)
	}
}
