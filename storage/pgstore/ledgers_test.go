package pgstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/tlog"
)

// The two organizations of every test.
const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world contains ledgers on a store, as a service runs them.
type world struct {
	passed  atomic.Int64 // events of red that traffic got through
	t       *testing.T
	store   log.Store
	keyring *seal.Keyring
	anchors string
	agent   *ledgertest.Agent
	first   func() bool
	weight  int // bytes of payload in addition to an event's name
	ledgers *log.Ledgers
	*ledgertest.Time
}

func newWorld(t *testing.T, store log.Store) *world {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, keyring: keyring, anchors: t.TempDir(), agent: ledgertest.NewAgent(), Time: new(ledgertest.Time)}
	w.open()
	return w
}

func (w *world) found() {
	w.t.Helper()
	for _, tenant := range []id.Tenant{red, blue} {
		if _, err := w.ledgers.Create(w.t.Context(), tenant, ledgertest.Genesis(tenant)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) open() {
	w.t.Helper()
	anchors, err := anchor.Open(w.anchors)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ledgers, err = log.Open(w.t.Context(), log.Options{
		Store: w.store, Keyring: w.keyring, Anchors: anchors, Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		Clock: w.Clock, AnchorFirst: w.first,
		Fatal: func(err error) { w.t.Errorf("fatal: %v", err) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// reopen starts the service again on a store.
func (w *world) reopen(store log.Store) {
	w.t.Helper()
	w.close()
	w.store = store
	w.open()
}

func (w *world) close() {
	w.t.Helper()
	if err := w.ledgers.Close(); err != nil {
		w.t.Error(err)
	}
}

// prepare returns submissions of events with these names.
func (w *world) prepare(tenant id.Tenant, names ...string) log.Prepare {
	w.t.Helper()
	var envelopes []*event.Envelope
	for _, name := range names {
		envelopes = append(envelopes, w.envelope(tenant, name))
	}
	return func(_ context.Context, s *log.State) (sub log.Submission, _ error) {
		for _, e := range envelopes {
			sub.Drafts = append(sub.Drafts, log.NewDraft(s.Identity(), e, w.agent.Attestation(e)))
		}
		return sub, nil
	}
}

func (w *world) envelope(tenant id.Tenant, name string) *event.Envelope {
	w.t.Helper()
	return w.agent.Envelope(w.t, tenant, name, map[string]any{"weight": randomText(name, w.weight)})
}

func (w *world) append(tenant id.Tenant, name string) error {
	_, err := w.ledgers.Append(w.t.Context(), tenant, w.prepare(tenant, name))
	return err
}

func (w *world) mustAppend(tenant id.Tenant, names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.append(tenant, name); err != nil {
			w.t.Fatalf("append %s: %v", name, err)
		}
	}
}

// mustAppendTogether appends n events as one batch.
func (w *world) mustAppendTogether(tenant id.Tenant, name string, n int) {
	w.t.Helper()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
	}
	if _, err := w.ledgers.Append(w.t.Context(), tenant, w.prepare(tenant, names...)); err != nil {
		w.t.Fatalf("append %s: %v", name, err)
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

func (w *world) checkpoint(tenant id.Tenant) tlog.Checkpoint {
	w.t.Helper()
	s := w.state(tenant)
	c, err := ledgertest.Signed(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// acknowledgements contains the results that clients got while events were sent.
type acknowledgements struct {
	mu           sync.Mutex
	acknowledged map[id.Tenant]map[string]log.Receipt
	shown        map[id.Tenant][]tlog.Checkpoint
}

// traffic sends events of both organizations from several callers until stop is closed, each at least once and again if
// it was not acknowledged.
func (w *world) traffic(stop <-chan struct{}) *acknowledgements {
	w.t.Helper()
	acknowledgements := &acknowledgements{acknowledged: map[id.Tenant]map[string]log.Receipt{red: {}, blue: {}}, shown: map[id.Tenant][]tlog.Checkpoint{}}
	var group sync.WaitGroup
	for sender := range 3 {
		for _, tenant := range []id.Tenant{red, blue} {
			group.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprintf("t-%d-%d", sender, i)
					w.send(acknowledgements, tenant, name)
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
	}
	group.Wait()
	return acknowledgements
}

func (w *world) send(acknowledgements *acknowledgements, tenant id.Tenant, name string) {
	receipts, err := w.ledgers.Append(context.Background(), tenant, w.prepare(tenant, name))
	if err != nil {
		return
	}
	acknowledgements.mu.Lock()
	defer acknowledgements.mu.Unlock()
	acknowledgements.acknowledged[tenant][name] = receipts[0]
	if tenant == red {
		w.passed.Add(1)
	}
	state, err := w.ledgers.State(context.Background(), tenant)
	if err != nil {
		return // the store is gone again, and the ledger with it until it is back
	}
	if c, err := ledgertest.Signed(state); err != nil {
		w.t.Error(err)
	} else {
		acknowledgements.shown[tenant] = append(acknowledgements.shown[tenant], c)
	}
}

// keeps checks that everything acknowledged is stored as acknowledged, that the heads extend everything shown, and that
// no ledger has a fault.
func (w *world) keeps(acknowledgements *acknowledgements) {
	w.t.Helper()
	for _, tenant := range []id.Tenant{red, blue} {
		s := w.state(tenant)
		if s.Fault().Level != log.Healthy {
			w.t.Errorf("tenant %d: fault %+v", tenant, s.Fault())
		}
		for name, r := range acknowledgements.acknowledged[tenant] {
			at, err := w.ledgers.Find(w.t.Context(), s, id.Event(name))
			if err != nil || at != r.Index {
				w.t.Errorf("%s: got index %d, %v, want %d", name, at, err, r.Index)
				continue
			}
			if leaf, _, _, err := w.ledgers.Inclusion(w.t.Context(), s, at, s.Size()); err != nil || leaf != r.EventHash {
				w.t.Errorf("%s: got leaf %v, %v, want %v", name, leaf, err, r.EventHash)
			}
		}
		for _, c := range acknowledgements.shown[tenant] {
			root, _, _, err := w.ledgers.Consistency(w.t.Context(), s, min(c.Size, s.Size()), s.Size())
			if err != nil || c.Size > s.Size() || root != c.Root {
				w.t.Errorf("tenant %d: the head at %d does not extend the checkpoint shown at %d: %v", tenant, s.Size(), c.Size, err)
			}
		}
	}
	_, err := audit.Fsck(w.t.Context(), w.store, w.keyring, nil, func(f audit.Finding) { w.t.Errorf("fsck: %v", f) })
	if err != nil {
		w.t.Error(err)
	}
}

func closeEngine(t *testing.T, e *pgstore.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// randomText returns text that hardly compresses. It is always the same for a name.
func randomText(name string, n int) string {
	var seed [32]byte
	copy(seed[:], name)
	random := rand.New(rand.NewChaCha8(seed))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('!' + random.IntN('~'-'!'))
	}
	return string(b)
}
