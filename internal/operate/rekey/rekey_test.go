package rekey_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

const kind storage.Kind = "test_key"

// world has two organizations with one sealed value each.
type world struct {
	*ledgertest.Service
	t              *testing.T
	old, both, new *seal.Keyring
	before         func() // called before each value is resealed
}

func contextOf(owner seal.Owner) string { return "test\n" + owner.Organization.String() }

func newWorld(t *testing.T) *world {
	first, second := seal.NewKey(), seal.NewKey()
	w := &world{Service: ledgertest.New(t), t: t, old: ring(t, first), both: ring(t, second, first), new: ring(t, second), before: func() {}}
	for _, tenant := range []id.Tenant{ledgertest.Red, ledgertest.Blue} {
		w.Found(t, tenant)
		w.put(tenant, w.sealed(w.old, tenant, "secret"))
	}
	return w
}

func ring(t *testing.T, active seal.Key, older ...seal.Key) *seal.Keyring {
	t.Helper()
	r, err := seal.NewKeyring(active, older...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) sealed(r *seal.Keyring, tenant id.Tenant, text string) []byte {
	w.t.Helper()
	value, err := r.Seal(contextOf(w.State(w.t, tenant).Identity().KeyOwner()), []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return value
}

func (w *world) put(tenant id.Tenant, value []byte) {
	w.t.Helper()
	if err := w.Store.Write(w.t.Context(), tenant, []storage.Change{{Kind: kind, Value: value, If: storage.AnyVersion}}); err != nil {
		w.t.Fatal(err)
	}
}

// holds checks that only the new key opens a tenant's value.
func (w *world) holds(tenant id.Tenant, want string) {
	w.t.Helper()
	r, err := w.Store.Get(w.t.Context(), tenant, kind, "")
	if err != nil {
		w.t.Fatal(err)
	}
	if got, err := w.new.Open(contextOf(w.State(w.t, tenant).Identity().KeyOwner()), r.Value); err != nil || string(got) != want {
		w.t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func (w *world) run() (int, error) { return w.resealer(w.Store).Run(w.t.Context()) }

func (w *world) resealer(store rekey.Store) *rekey.Rekeyer {
	return &rekey.Rekeyer{Store: store, Ledgers: w.Ledgers, Keyring: w.both, Sealed: []seal.Record{
		{Kind: "nobody_has_it", Reseal: nil},
		{Kind: kind, Reseal: func(k *seal.Keyring, owner seal.Owner, value []byte) ([]byte, bool, error) {
			w.before()
			return k.Reseal(contextOf(owner), value)
		}},
	}}
}

func TestRun(t *testing.T) {
	w := newWorld(t)
	for _, want := range []int{2, 0} {
		if n, err := w.run(); n != want || err != nil {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
		w.holds(ledgertest.Red, "secret")
		w.holds(ledgertest.Blue, "secret")
	}
}

// A concurrent change of a record wins.
func TestRunBesideChanges(t *testing.T) {
	w := newWorld(t)
	changes := 3
	w.before = func() {
		if changes--; changes >= 0 {
			w.put(ledgertest.Red, w.sealed(w.old, ledgertest.Red, "newer"))
		}
	}
	if n, err := w.run(); n != 2 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	w.holds(ledgertest.Red, "newer")
	w.holds(ledgertest.Blue, "secret")

	w = newWorld(t)
	w.before = func() { w.put(ledgertest.Red, w.sealed(w.old, ledgertest.Red, "again")) }
	if n, err := w.run(); n != 1 || err == nil || !strings.Contains(err.Error(), "too many concurrent changes") {
		t.Errorf("a record that always changes: got %d, %v", n, err)
	}
}

// A value that cannot be opened is left unchanged and does not stop the others.
func TestRunPastDamage(t *testing.T) {
	w := newWorld(t)
	damaged := w.sealed(w.old, ledgertest.Blue, "of another context")
	w.put(ledgertest.Red, damaged)
	if n, err := w.run(); n != 1 || !errors.Is(err, seal.ErrDamaged) {
		t.Errorf("got %d, %v", n, err)
	}
	if r, err := w.Store.Get(t.Context(), ledgertest.Red, kind, ""); err != nil || string(r.Value) != string(damaged) {
		t.Errorf("the record has changed: %v", err)
	}
	w.holds(ledgertest.Blue, "secret")
}
