package directory_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/verify"
)

const tenant id.Tenant = 99 // the directory's

// world is a service with two organizations and a directory.
type world struct {
	*ledgertest.Service
	*directory.Directory
	testing.TB
	appended int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s := ledgertest.New(t)
	for _, each := range []id.Tenant{ledgertest.Red, ledgertest.Blue, tenant} {
		s.Found(t, each)
	}
	w := &world{Service: s, TB: t}
	w.Directory = w.another()
	return w
}

// another returns a directory of the same service, as in another process.
func (w *world) another() *directory.Directory {
	return directory.New(directory.Options{
		Ledgers: w.Ledgers, Store: w.Store, Events: w.SystemEvents, Tenant: tenant, Interval: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(w.Output(), nil)),
	})
}

// say appends n events to a log.
func (w *world) say(t id.Tenant, n int) {
	w.Helper()
	for range n {
		w.appended++
		_, err := w.SystemEvents.Append(w.Context(), t, sysevent.Operator, func(context.Context, *log.State) (sysevent.Change, error) {
			return sysevent.Change{KeepConfigVersion: true, Statements: []sysevent.Statement{{Kind: sysevent.SettingsChanged, Payload: map[string]any{"n": w.appended}}}}, nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}

// publish publishes and checks how many logs were listed.
func (w *world) publish(want int) {
	w.Helper()
	if got, err := w.Publish(w.Context()); err != nil || got != want {
		w.Fatalf("got %d, %v, want %d", got, err, want)
	}
}

// bundle verifies and returns the bundle of an event in the directory's log.
func (w *world) bundle(at id.Index) (*verify.Bundle, verify.Listing) {
	w.Helper()
	ctx, s := w.Context(), w.State(w.TB, tenant)
	e, err := w.Ledgers.Event(ctx, s, at, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		w.Fatal(err)
	}
	p := verify.Parts{
		Organization: s.Identity().Organization, Slug: "directory", Event: e.ID, Index: at, Entry: log.EntryOf(e), Checkpoint: s.Shown(), Note: s.Checkpoint(),
		Key: s.VerifierKey(), ActionKind: e.ActionKind, Disclosure: e.Disclosure, Record: e.Record, Envelope: e.Envelope,
	}
	if p.Proof, err = w.Ledgers.InclusionOf(ctx, s, e, s.Size()); err != nil {
		w.Fatal(err)
	}
	if at > 0 {
		before, err := w.Ledgers.Event(ctx, s, at-1, 0)
		if err != nil {
			w.Fatal(err)
		}
		p.Previous = log.EntryOf(before)
		if p.PreviousProof, err = w.Ledgers.InclusionOf(ctx, s, before, s.Size()); err != nil {
			w.Fatal(err)
		}
	}
	b, err := verify.NewBundle(p)
	if err != nil {
		w.Fatal(err)
	}
	if r := verify.Check(b, verify.Options{}); !r.OK || b.Envelope == nil || r.EnvelopeOK == nil {
		w.Fatalf("the bundle does not show the event: %v", r.Errors)
	}
	envelope, err := event.Parse([]byte(*b.Envelope), event.Options{Server: true})
	if err != nil {
		w.Fatal(err)
	}
	l, err := verify.ParseListing(envelope)
	if err != nil {
		w.Fatal(err)
	}
	return b, l
}

// newest checks that the latest listing of a log matches its state and the directory's event.
func (w *world) newest(t id.Tenant) {
	w.Helper()
	s := w.State(w.TB, t)
	entry, err := w.Find(w.Context(), s.Identity().Origin)
	if err != nil || entry.Size != s.Size() || entry.Root != s.Root() {
		w.Fatalf("got %+v, %v, want size %d", entry, err, s.Size())
	}
	at, err := w.Ledgers.Find(w.Context(), w.State(w.TB, tenant), entry.Event)
	if err != nil {
		w.Fatal(err)
	}
	_, l := w.bundle(at)
	want := verify.Listed{Origin: s.Identity().Origin, Size: s.Size(), Root: s.Root(), LogKey: s.VerifierKey().String()}
	for _, listed := range l.Checkpoints {
		if listed == want {
			return
		}
	}
	w.Errorf("got %+v, want %+v in it", l, want)
}

func TestLists(t *testing.T) {
	w := newWorld(t)
	w.publish(0)
	w.say(ledgertest.Red, 3)
	w.publish(1)
	w.newest(ledgertest.Red)
	if _, err := w.Find(t.Context(), ledgertest.Origin(ledgertest.Blue)); !fault.Is(err, fault.NotFound) {
		t.Errorf("an empty log is listed: %v", err)
	}
	w.publish(0)
	w.say(ledgertest.Red, 50)
	w.say(ledgertest.Blue, 1)
	w.publish(2)
	w.newest(ledgertest.Red)
	w.newest(ledgertest.Blue)
	if got := w.State(t, tenant).Size(); got != 2 {
		t.Errorf("the directory has %d events, want 2: however fast a log grows", got)
	}
	if statements := w.Audit(t, tenant); len(statements) != 2 || statements[0].Principal != sysevent.Operator {
		t.Errorf("got %v", statements)
	}
}

// The list has every log once, with its newest listing, also when it is read in parts.
func TestListsForPages(t *testing.T) {
	w := newWorld(t)
	w.say(ledgertest.Red, 3)
	w.publish(1)
	w.say(ledgertest.Red, 2)
	w.say(ledgertest.Blue, 1)
	w.publish(2)
	sizes := map[string]id.Index{}
	for after, more := "", true; more; {
		part, err := w.List(t.Context(), after, 1)
		if more = len(part) == 1; err != nil || len(part) > 1 {
			t.Fatalf("got %v, %v", part, err)
		}
		if more {
			after = part[0].Path
			sizes[after] = part[0].Size
		}
	}
	red, blue := ledgertest.Organization(ledgertest.Red).String(), ledgertest.Organization(ledgertest.Blue).String()
	if len(sizes) != 2 || sizes[red] != w.State(t, ledgertest.Red).Size() || sizes[blue] != w.State(t, ledgertest.Blue).Size() {
		t.Errorf("got %v", sizes)
	}
}

// Logs that moved before the directory followed them are found, and nothing is listed twice.
func TestCatchUp(t *testing.T) {
	w := newWorld(t)
	w.say(ledgertest.Red, 2)
	w.Directory = w.another()
	w.publish(0)
	if err := w.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.publish(1)
	w.newest(ledgertest.Red)
	if err := w.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.publish(0)
}

// Two processes follow the same ledgers: what one has listed, the other does not list.
func TestTwoProcesses(t *testing.T) {
	w := newWorld(t)
	other := w.another()
	w.say(ledgertest.Red, 2)
	w.say(ledgertest.Blue, 2)
	w.publish(2)
	if got, err := other.Publish(t.Context()); got != 0 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if got := w.State(t, tenant).Size(); got != 1 {
		t.Errorf("the directory has %d events", got)
	}
}

// There are more logs than one event, and one append, can list.
func TestMany(t *testing.T) {
	const n = 8*verify.MaxListed + 10
	w := newWorld(t)
	for i := range id.Tenant(n) {
		w.Found(t, 1000+i)
		w.say(1000+i, 1)
	}
	w.publish(8 * verify.MaxListed)
	w.publish(10)
	w.publish(0)
	if got := w.State(t, tenant).Size(); got != 9 {
		t.Errorf("the directory has %d events, want 9", got)
	}
	for _, i := range []id.Tenant{0, verify.MaxListed - 1, verify.MaxListed, n - 1} {
		w.newest(1000 + i)
	}
}

// A log that does not extend its listed state is frozen; the others continue.
func TestContradiction(t *testing.T) {
	w := newWorld(t)
	w.say(ledgertest.Red, 2)
	w.say(ledgertest.Blue, 2)
	w.publish(2)
	for _, size := range []id.Index{1, 2} {
		forged, err := json.Marshal(directory.Entry{Event: "x", Size: size, Root: id.Hash{1}})
		if err != nil {
			t.Fatal(err)
		}
		key := ledgertest.Organization(ledgertest.Red).String()
		change := storage.Change{Kind: "directory_listed", Key: key, Value: forged, If: storage.AnyVersion}
		if err := w.Store.Write(t.Context(), tenant, []storage.Change{change}); err != nil {
			t.Fatal(err)
		}
		if size == 1 {
			w.say(ledgertest.Red, 1)
			w.say(ledgertest.Blue, 1)
			w.publish(1)
		}
		if got := w.State(t, ledgertest.Red).Fault().Level; got != log.Frozen {
			t.Errorf("got level %q", got)
		}
		w.newest(ledgertest.Blue)
	}
}

// Whatever the outcome of an append, a log is listed once in the end.
func TestFailures(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"refused": storagetest.Refused, "request lost": storagetest.RequestLost, "answer lost": storagetest.AnswerLost,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.say(ledgertest.Red, 2)
			failed := 0
			w.Store.Fail(func(b storage.Batch) storagetest.Failure {
				if failed++; b.Tenant != tenant || failed > 1 {
					return 0
				}
				return failure
			})
			_, _ = w.Publish(t.Context()) // it may fail
			w.Store.Fail(nil)
			for range 3 {
				if _, err := w.Publish(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			w.newest(ledgertest.Red)
			if got := w.State(t, tenant).Size(); got != 1 {
				t.Errorf("the directory has %d events", got)
			}
		})
	}
}

// Run lists existing logs, then those that move, and stops.
func TestRun(t *testing.T) {
	w := newWorld(t)
	w.say(ledgertest.Red, 1)
	w.Directory = w.another()
	moves := w.Ledgers.Moves()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx) }()
	wait := func(size id.Index) {
		for w.State(t, tenant).Size() < size {
			select {
			case <-moves.Ready():
				moves.Take()
			case <-time.After(2 * time.Minute):
				t.Fatal("nothing is listed")
			}
		}
	}
	wait(1)
	w.newest(ledgertest.Red)
	w.say(ledgertest.Blue, 1)
	wait(2)
	w.newest(ledgertest.Blue)
	stop()
	<-ended
}

// Only a listing is shown in full.
func TestOtherStatementsStayClosed(t *testing.T) {
	w := newWorld(t)
	w.say(tenant, 1)
	w.say(ledgertest.Red, 1)
	w.publish(1)
	for at, want := range []id.Disclosure{id.DiscloseRecord, id.DiscloseFull} {
		e, err := w.Ledgers.Event(t.Context(), w.State(t, tenant), id.Index(at), storage.FieldRecord)
		if err != nil || e.Disclosure != want {
			t.Errorf("event %d (%s): got %v, %v, want %v", at, e.ActionKind, e.Disclosure, err, want)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	w := newWorld(b)
	for i := range id.Tenant(verify.MaxListed) {
		w.Found(b, 1000+i)
	}
	for b.Loop() {
		b.StopTimer()
		for i := range id.Tenant(verify.MaxListed) {
			w.say(1000+i, 1)
		}
		b.StartTimer()
		w.publish(verify.MaxListed)
	}
	b.ReportMetric(float64(b.N)*verify.MaxListed/b.Elapsed().Seconds(), "logs/s")
}
