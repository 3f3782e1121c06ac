package log_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// The two organizations of every test.
const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has ledgers on a store, a clock that the test moves, and an agent key that signs for both organizations.
type world struct {
	t       *testing.T
	store   log.Store
	keyring *seal.Keyring
	anchors string
	folder  *anchor.Folder // of anchors
	ledgers *log.Ledgers
	auditor *audit.Auditor // of ledgers
	agent   *ledgertest.Agent

	verified keytable.Verified // the signatures of all envelopes
	fatal    chan error
	disk     vfs.FS // of the store, if a test needs it
	*ledgertest.Time
}

func newWorld(t *testing.T, store log.Store) *world {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, store: store, keyring: keyring, anchors: t.TempDir(), agent: ledgertest.NewAgent(),
		fatal: make(chan error, 16), Time: new(ledgertest.Time),
	}
	w.open(log.Options{})
	for _, tenant := range []id.Tenant{red, blue} {
		if _, err := w.ledgers.Create(t.Context(), tenant, ledgertest.Genesis(tenant)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) open(o log.Options) {
	w.t.Helper()
	w.start(o)
	ledgers := w.ledgers
	w.t.Cleanup(func() { ledgers.Close() })
}

// start is open for a process that may end early.
func (w *world) start(o log.Options) {
	w.t.Helper()
	anchors, err := anchor.Open(w.anchors)
	if err != nil {
		w.t.Fatal(err)
	}
	o.Store, o.Keyring, o.Anchors, o.Clock = w.store, w.keyring, anchors, w.Clock
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}
	o.Fatal = func(err error) { w.fatal <- err }
	ledgers, err := log.Open(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ledgers, w.folder = ledgers, anchors
	w.auditor = audit.New(audit.Options{Ledgers: ledgers, Store: w.store, Logger: o.Logger, Metrics: o.Metrics, Clock: w.Clock,
		Verified: &w.verified})
}

// reopen stops and restarts on another view of the data.
func (w *world) reopen(store log.Store) {
	w.t.Helper()
	w.ledgers.Close()
	w.store = store
	w.open(log.Options{})
}

// envelope signs an event of an organization.
func (w *world) envelope(tenant id.Tenant, name string) *event.Envelope {
	e := w.agent.Envelope(w.t, tenant, name, nil)
	w.verified.Note(w.agent.Public(), e.Digest, e.Signature) // like a surface that has verified it
	return e
}

// single prepares a submission of one event.
func (w *world) single(tenant id.Tenant, name string, cap uint64) log.Prepare {
	e := w.envelope(tenant, name)
	return func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{w.draft(s, e, cap)}}, nil
	}
}

func (w *world) draft(s *log.State, e *event.Envelope, cap uint64) log.Draft {
	a := w.agent.Attestation(e)
	a.Cap = cap
	return log.NewDraft(s.Identity(), e, a)
}

func (w *world) append(tenant id.Tenant, name string) (log.Receipt, error) {
	receipts, err := w.ledgers.Append(w.t.Context(), tenant, w.single(tenant, name, 0))
	if err != nil {
		return log.Receipt{}, err
	}
	return receipts[0], nil
}

func (w *world) mustAppend(tenant id.Tenant, names ...string) {
	w.t.Helper()
	for _, name := range names {
		if _, err := w.append(tenant, name); err != nil {
			w.t.Fatalf("append %s: %v", name, err)
		}
	}
}

func (w *world) state(tenant id.Tenant) *log.State {
	w.t.Helper()
	s, err := w.ledgers.State(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// replayed queries one event.
func (w *world) replayed(tenant id.Tenant, name id.Event, key string, digest id.Hash) (bool, error) {
	r := w.ledgers.Replays(w.t.Context(), w.state(tenant), []log.Query{{Event: name, Key: key, IngestKey: "ik_test", Digest: digest}})[0]
	return r.Known, r.Err
}

// audit re-verifies everything from the first event and compares receipts with the store.
func (w *world) audit(receipts map[id.Tenant]map[string]log.Receipt) {
	w.t.Helper()
	findings := w.fsck(w.store)
	for _, f := range findings {
		w.t.Errorf("fsck: %v", f)
	}
	for tenant, byName := range receipts {
		s := w.state(tenant)
		seen := make(map[id.Index]string)
		for name, r := range byName {
			if other, twice := seen[r.Index]; twice {
				w.t.Errorf("events %s and %s have index %d", name, other, r.Index)
			}
			seen[r.Index] = name
			w.holds(s, name, r)
		}
	}
}

// holds checks that an acknowledged event is in the published tree.
func (w *world) holds(s *log.State, name string, r log.Receipt) {
	w.t.Helper()
	at, err := w.ledgers.Find(w.t.Context(), s, id.Event(name))
	if err != nil || at != r.Index {
		w.t.Errorf("event %s: got index %d, %v; want %d", name, at, err, r.Index)
		return
	}
	leaf, root, _, err := w.ledgers.Inclusion(w.t.Context(), s, at, s.Size())
	if err != nil || leaf != r.EventHash || root != s.Root() {
		w.t.Errorf("event %s: inclusion: leaf %v, root %v, %v; want leaf %v, root %v", name, leaf, root, err, r.EventHash, s.Root())
	}
	if e, err := w.ledgers.Event(w.t.Context(), s, at, 0); err != nil || log.EntryOf(e).Hash() != r.EventHash {
		w.t.Errorf("event %s: got entry %v, %v; want hash %v", name, e.Entry, err, r.EventHash)
	}
}

func (w *world) fsck(store log.Store) []audit.Finding {
	w.t.Helper()
	var findings []audit.Finding
	if _, err := audit.Fsck(w.t.Context(), store, w.keyring, nil, func(f audit.Finding) { findings = append(findings, f) }); err != nil {
		w.t.Fatal(err)
	}
	return findings
}

// burst appends n events to each organization from several goroutines and returns the acknowledged ones.
func (w *world) burst(n int, prefix string) map[id.Tenant]map[string]log.Receipt {
	const senders = 8
	acknowledged := map[id.Tenant]map[string]log.Receipt{red: {}, blue: {}}
	var mu sync.Mutex
	var group sync.WaitGroup
	for sender := range senders {
		for _, tenant := range []id.Tenant{red, blue} {
			group.Go(func() {
				for i := sender; i < n; i += senders {
					name := fmt.Sprintf("%s-%d", prefix, i)
					r, err := w.append(tenant, name)
					if err != nil {
						continue
					}
					mu.Lock()
					acknowledged[tenant][name] = r
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	return acknowledged
}

func (w *world) checkpoint(tenant id.Tenant) tlog.Checkpoint {
	w.t.Helper()
	c, err := ledgertest.Signed(w.state(tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// damaged is a store that returns wrong reads.
type damaged struct {
	*storagetest.Model
	event func(tenant id.Tenant, e *storage.Event)
	slow  error // of reads of entries; nil: none
}

func (d *damaged) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for e, err := range d.Model.Events(ctx, t, begin, end, parts) {
			if err == nil && d.event != nil {
				d.event(t, &e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (d *damaged) Entries(ctx context.Context, places []storage.Position) []storage.EntryResult {
	found := d.Model.Entries(ctx, places)
	for i, p := range places {
		if d.slow != nil {
			found[i] = storage.EntryResult{Err: d.slow}
		}
		if found[i].Err == nil && d.event != nil {
			e := storage.Event{Index: p.Index, Entry: found[i].Entry}
			d.event(p.Tenant, &e)
			found[i].Entry = e.Entry
		}
	}
	return found
}
