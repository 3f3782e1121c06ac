package policystore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func statement(kind string, v policystore.Version) ledgertest.Statement {
	return ledgertest.Statement{Kind: kind, Principal: ann, Payload: fmt.Sprintf(
		`{"policy_digest":"%s","policy_id":"%s","policy_version":%d}`, v.Digest, v.PolicyID, v.Version)}
}

// The life of two policies with the same names in two organizations.
func TestActivate(t *testing.T) {
	w := newWorld(t)
	for _, tenant := range []id.Tenant{red, blue} {
		w.create(tenant, "payments", "acme.pay")
		w.create(tenant, "mails", "acme.mail")
	}
	w.Pass(time.Minute)
	one := w.activate(red, "payments")
	if one.State != policystore.Active || one.Version != 1 || one.ActivatedAt != id.InstantOf(w.Clock()) {
		t.Errorf("got %+v", one)
	}
	w.mustDecide(red, "acme.pay", "payments/1/r deny")
	w.mustDecide(blue, "acme.pay", "none/0/none allow")

	w.draft(red, "payments", `{"default":"deny"}`)
	w.mustDecide(red, "acme.other", "payments/1/default allow")
	w.Pass(time.Minute)
	two := w.activate(red, "payments")
	w.mustDecide(red, "acme.other", "payments/2/default deny")
	mails := w.activate(red, "mails")
	w.mustDecide(red, "acme.mail", "mails/1/r deny")
	w.mustDecide(red, "acme.pay", "mails/1/default allow")

	want := []ledgertest.Statement{
		statement("ledger_policy_activated", one),
		statement("ledger_policy_archived", one),
		statement("ledger_policy_activated", two),
		statement("ledger_policy_archived", two),
		statement("ledger_policy_activated", mails),
	}
	if got := w.Audit(t, red); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := w.Audit(t, blue); len(got) != 0 {
		t.Errorf("blue: got %+v", got)
	}
	states := map[uint64]policystore.State{1: policystore.Archived, 2: policystore.Archived}
	for version, want := range states {
		if got := w.get(red, "payments", version); got.State != want || got.ArchivedAt == 0 {
			t.Errorf("version %d: got %+v, want %s", version, got, want)
		}
	}
	if old := w.get(red, "payments", 1); old.Digest != one.Digest || string(old.Document) != string(one.Document) {
		t.Error("version 1 has changed")
	}
	list, err := w.book.List(t.Context(), red, "", 10)
	wantList := []policystore.Listed{
		{PolicyID: "mails", Name: "About acme.mail", Version: 1, State: policystore.Active, Active: 1, UpdatedAt: id.InstantOf(w.Clock()), UpdatedBy: ann},
		{PolicyID: "payments", Name: "About acme.pay", Version: 2, State: policystore.Archived, UpdatedAt: id.InstantOf(w.Clock()), UpdatedBy: ann},
	}
	if err != nil || !slices.Equal(list, wantList) {
		t.Errorf("got %+v, %v; want %+v", list, err, wantList)
	}
}

func TestActivateRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	w.create(red, "mails", "acme.mail")
	w.create(blue, "blue-only", "acme.pay")
	w.activate(red, "payments")
	activate := func(policyID string) error {
		_, err := w.book.Activate(t.Context(), red, ann, policyID)
		return err
	}
	refused(t, "active", activate("payments"), fault.Conflict, "The latest version of the policy is already active: change it first")
	w.activate(red, "mails")
	refused(t, "archived", activate("payments"), fault.Conflict, "The latest version of the policy is already archived: change it first")
	refused(t, "unknown", activate("nothing"), fault.NotFound, "Not found")
	refused(t, "blue's", activate("blue-only"), fault.NotFound, "Not found")
	refused(t, "a version's key", activate("payments/00000000000001"), fault.NotFound, "Not found")
	w.draft(red, "payments", `{}`)
	w.activate(red, "payments")
	w.mustDecide(red, "acme.pay", "payments/2/r deny")
}

func TestGetRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	w.create(blue, "blue-only", "acme.pay")
	for name, tc := range map[string]struct {
		policyID string
		version  uint64
	}{
		"unknown":          {"nothing", 0},
		"blue's":           {"blue-only", 0},
		"beyond":           {"payments", 2},
		"far beyond":       {"payments", ^uint64(0)},
		"of a version key": {"payments/00000000000001", 0},
	} {
		_, err := w.book.Get(t.Context(), red, tc.policyID, tc.version)
		refused(t, name, err, fault.NotFound, "Not found")
	}
}

// However many concurrent activations there are, exactly one policy is active in the end, and the ledger and every
// record agree.
func TestActivateAtOnce(t *testing.T) {
	w := newWorld(t)
	const policies = 4
	for i := range policies {
		for _, tenant := range []id.Tenant{red, blue} {
			w.create(tenant, fmt.Sprint("p", i), "acme.pay")
		}
	}
	var group sync.WaitGroup
	for i := range 2 * policies { // each one twice
		for _, tenant := range []id.Tenant{red, blue} {
			group.Go(func() {
				_, err := w.book.Activate(t.Context(), tenant, ann, fmt.Sprint("p", i%policies))
				if err != nil && !fault.Is(err, fault.Conflict) {
					t.Error(err)
				}
			})
		}
		group.Go(func() {
			if _, err := w.book.Draft(t.Context(), red, ann, fmt.Sprint("p", i%policies), []byte(`{"name":"changed"}`)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.oneActive(red)
	w.oneActive(blue)
}

// oneActive compares the list, the statements and the policy that decides.
func (w *world) oneActive(tenant id.Tenant) {
	w.t.Helper()
	list, err := w.book.List(w.t.Context(), tenant, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	var active []policystore.Version
	for _, p := range list {
		if p.Active != 0 {
			active = append(active, w.get(tenant, p.PolicyID, p.Active))
		}
	}
	if len(active) != 1 || active[0].State != policystore.Active {
		w.t.Fatalf("tenant %d: got active policies %+v, want one", tenant, active)
	}
	w.mustDecide(tenant, "acme.pay", fmt.Sprintf("%s/%d/r deny", active[0].PolicyID, active[0].Version))
	statements := w.Audit(w.t, tenant)
	if last := statements[len(statements)-1]; last != statement("ledger_policy_activated", active[0]) {
		w.t.Errorf("tenant %d: got last statement %+v", tenant, last)
	}
	for i := 1; i < len(statements); i += 2 { // a, then pairs of (archived a, activated b)
		if statements[i].Kind != "ledger_policy_archived" || statements[i].Payload != statements[i-1].Payload {
			w.t.Errorf("tenant %d: statement %d does not archive the one before", tenant, i)
		}
	}
}

// An activation whose append fails changes nothing.
func TestActivateIsAtomic(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	w.create(red, "mails", "acme.pay")
	w.activate(red, "payments")
	w.Store.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Refused })
	if _, err := w.book.Activate(t.Context(), red, ann, "mails"); err == nil {
		t.Fatal("the append did not fail")
	}
	w.Store.Fail(nil)
	w.oneActive(red)
	w.mustDecide(red, "acme.pay", "payments/1/r deny")
	w.activate(red, "mails")
	w.oneActive(red)
}

// A policy that cannot be read is not treated as "none is active".
func TestActiveFailsClosed(t *testing.T) {
	const message = "Policies can't be read"
	damage := func(kind storage.Kind, key string, value []byte) func(*world) {
		return func(w *world) {
			change := storage.Change{Kind: kind, Key: key, Value: value, If: storage.AnyVersion}
			if err := w.Store.Write(t.Context(), red, []storage.Change{change}); err != nil {
				t.Fatal(err)
			}
		}
	}
	other, err := policy.Parse(document("payments", "acme.other"))
	if err != nil {
		t.Fatal(err)
	}
	other.Version = 1
	for name, harm := range map[string]func(*world){
		"unreadable store":   func(w *world) { w.store.blind.Store(true) },
		"pointer not JSON":   damage("policy_active", "", []byte("{")),
		"pointer to nothing": damage("policy_active", "", []byte(`{"policy_id":"payments","version":9,"digest":"`+id.Hash{}.String()+`"}`)),
		"version gone":       damage("policy_version", "payments/00000000000001", nil),
		"version not JSON":   damage("policy_version", "payments/00000000000001", []byte("[")),
		"not a policy":       damage("policy_version", "payments/00000000000001", []byte(`{"document":{"rules":7}}`)),
		"another document":   damage("policy_version", "payments/00000000000001", []byte(`{"document":`+string(other.Canonical())+`,"written_at":"2026-11-20T12:00:00.000Z","written_by":""}`)),
	} {
		w := newWorld(t)
		w.create(red, "payments", "acme.pay")
		w.activate(red, "payments")
		harm(w)
		compiled, err := w.book.Active(t.Context(), w.State(t, red))
		refused(t, name, err, fault.Unavailable, message)
		if compiled != nil {
			t.Errorf("%s: got a policy", name)
		}
	}
}

func TestUnreadableStore(t *testing.T) {
	const message = "Policies can't be read"
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	w.store.blind.Store(true)
	_, err := w.book.Get(t.Context(), red, "payments", 0)
	refused(t, "get", err, fault.Unavailable, message)
	_, err = w.book.List(t.Context(), red, "", 10)
	refused(t, "list", err, fault.Unavailable, message)
	_, err = w.book.Create(t.Context(), red, ann, document("p", "x"))
	refused(t, "create", err, fault.Unavailable, message)
	_, err = w.book.Activate(t.Context(), red, ann, "payments")
	refused(t, "activate", err, fault.Unavailable, message)
	refused(t, "delete", w.book.Delete(t.Context(), red, "payments"), fault.Unavailable, message)
}

// The active policy is read once for each config version, even if there is none.
func TestActiveIsCached(t *testing.T) {
	w := newWorld(t)
	reads := func(want int64) {
		t.Helper()
		before := w.store.reads.Load()
		for range 5 {
			w.decides(red, "acme.pay")
			w.decides(blue, "acme.pay")
		}
		if got := w.store.reads.Load() - before; got != want {
			t.Errorf("got %d reads, want %d", got, want)
		}
	}
	reads(2)
	reads(0)
	w.create(red, "payments", "acme.pay")
	reads(0)
	before := w.State(t, red)
	w.activate(red, "payments")
	reads(2)
	if _, err := w.book.Active(t.Context(), before); err != nil {
		t.Error(err)
	}
	reads(0)
	w.mustDecide(red, "acme.pay", "payments/1/r deny")
}

// A cache too small for two policies still returns the right one.
func TestActiveBeyondTheCache(t *testing.T) {
	w := newWorld(t)
	w.book = policystore.New(policystore.Options{Records: w.store, Events: w.SystemEvents, Clock: w.Clock, CacheBytes: 1})
	w.create(red, "payments", "acme.pay")
	w.activate(red, "payments")
	for range 3 {
		w.mustDecide(red, "acme.pay", "payments/1/r deny")
		w.mustDecide(blue, "acme.pay", "none/0/none allow")
	}
}

func BenchmarkActive(b *testing.B) {
	w := newWorld(b)
	w.create(red, "payments", "acme.pay")
	w.activate(red, "payments")
	s := w.State(b, red)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := w.book.Active(b.Context(), s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
