package member_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// signInWorld is an engine with organizations of ann. bob is only in the first one.
func signInWorld(t *testing.T, engine storage.Engine, tenants ...id.Tenant) *world {
	w := &world{Service: ledgertest.On(t, engine), t: t}
	w.accounts = account.New(account.Options{Records: engine, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	w.members = w.node()
	for i, tenant := range tenants {
		names := []string{"ann", "bob"}
		if i > 0 {
			names = names[:1]
		}
		var records []storage.Change
		for _, name := range names {
			record, _, err := w.accounts.NewMembership(t.Context(), tenant, w.account(name), account.Owner)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		w.Found(t, tenant, records...)
	}
	return w
}

// node returns the members as one of several nodes sees them.
func (w *world) node() *member.Members {
	return member.New(member.Options{Records: w.Engine, Events: w.SystemEvents, Accounts: w.accounts, Clock: w.Clock})
}

func (w *world) signInEvents(t id.Tenant) (found []ledgertest.Statement) {
	w.t.Helper()
	for _, s := range w.Audit(w.t, t) {
		if s.Kind == "ledger_member_sign_in_changed" {
			found = append(found, s)
		}
	}
	return found
}

// A change is stated once in each organization of the member, whichever nodes perform it and when.
func TestSignInChangeIsStatedEverywhere(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		var tenants []id.Tenant
		for i := range 20 {
			tenants = append(tenants, id.Tenant(i+1))
		}
		w := signInWorld(t, open(t), tenants...)
		w.Pass(time.Minute)
		if err := w.accounts.SetPassword(t.Context(), "ann@example.com", "the operator's choice"); err != nil {
			t.Fatal(err)
		}
		// A vote performs the change in the first organization before the sweep does.
		if err := w.members.StateSignIn(t.Context(), tenants[0], w.account("ann")); err != nil {
			t.Fatal(err)
		}
		var nodes sync.WaitGroup
		for range 2 {
			nodes.Go(func() {
				if err := w.node().Sweep(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		nodes.Wait()
		for _, tenant := range tenants {
			events := w.signInEvents(tenant)
			if len(events) != 1 || events[0].Principal != "operator" || !strings.Contains(events[0].Payload, `"change":"password_set"`) ||
				!strings.Contains(events[0].Payload, string(w.account("ann"))) {
				t.Fatalf("organization %d: got %v", tenant, events)
			}
		}
		left, err := w.Engine.Scan(t.Context(), id.Service, account.KindSignInDue, "", "\xff", 10)
		if err != nil || len(left) > 0 {
			t.Errorf("entries are left: %v, %v", left, err)
		}
		listed, err := w.members.SignInsChanged(t.Context(), tenants[0], time.Hour)
		if err != nil || len(listed) != 1 || listed[0].Email != "ann@example.com" || listed[0].By != account.SignInByOperator {
			t.Errorf("listed: got %v, %v", listed, err)
		}
		w.Pass(2 * time.Hour)
		if listed, err = w.members.SignInsChanged(t.Context(), tenants[0], time.Hour); err != nil || len(listed) != 0 {
			t.Errorf("listed later: got %v, %v", listed, err)
		}
	})
}

// A process that ends between the notes and the change leaves entries that do no harm. One that ends after the change
// leaves entries that are completed later.
func TestSignInChangeAfterACrash(t *testing.T) {
	w := signInWorld(t, enginetest.Pebble(t), red, blue)
	w.Pass(time.Minute)
	due := schedule.Index{Records: w.Engine, Kind: account.KindSignInDue}
	if err := due.NoteEntries(t.Context(), schedule.Entry{At: id.InstantOf(w.Clock()), Tenant: red, Name: string(w.account("bob"))}); err != nil {
		t.Fatal(err)
	}
	if err := w.members.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if events := w.signInEvents(red); len(events) != 0 {
		t.Errorf("without a change: got %v", events)
	}
	w.Pass(2 * time.Second)
	if err := w.accounts.SetPassword(t.Context(), "bob@example.com", "the operator's choice"); err != nil {
		t.Fatal(err)
	}
	again := w.node() // as another process
	if err := again.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if events := w.signInEvents(red); len(events) != 1 {
		t.Errorf("after the crash: got %v", events)
	}
	if events := w.signInEvents(blue); len(events) != 0 {
		t.Errorf("an organization of others: got %v", events)
	}
	for i := range 40 { // more changes than an account stores
		if err := w.accounts.SetPassword(t.Context(), "bob@example.com", fmt.Sprintf("the operator's choice %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := again.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := w.signInEvents(red)
	if last := events[len(events)-1].Payload; len(events) != 33 || !strings.Contains(last, `"number":41`) {
		t.Errorf("many changes: got %d events, the last is %s", len(events), last)
	}
}
