package policystore_test

import (
	"context"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const ben = "acc_ben"

// An archived version becomes active again, with a draft beside it.
func TestActivateOlderVersion(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	w.create(blue, "payments", "acme.pay")
	one := w.activate(red, "payments")
	w.draft(red, "payments", `{"default":"deny"}`)
	two := w.activate(red, "payments")
	w.draft(red, "payments", `{"name":"Third"}`)
	activate := func(a policystore.Activation) (policystore.Version, error) {
		return w.book.ActivateVersion(t.Context(), red, ben, a)
	}
	back, err := activate(policystore.Activation{PolicyID: "payments", Version: 1, Digest: one.Digest})
	if err != nil || back.State != policystore.Active || back.ArchivedAt != 0 || back.Digest != one.Digest {
		t.Fatalf("got %+v, %v", back, err)
	}
	w.mustDecide(red, "acme.other", "payments/1/default allow")
	for version, want := range map[uint64]policystore.State{
		1: policystore.Active, 2: policystore.Archived, 3: policystore.Draft,
	} {
		if got := w.get(red, "payments", version).State; got != want {
			t.Errorf("version %d: got %s, want %s", version, got, want)
		}
	}
	_, err = activate(policystore.Activation{PolicyID: "payments", Version: 1})
	refused(t, "active", err, fault.Conflict, "The version is already active")
	_, err = activate(policystore.Activation{PolicyID: "payments", Version: 4})
	refused(t, "beyond", err, fault.NotFound, "Not found")
	_, err = activate(policystore.Activation{PolicyID: "payments", Digest: one.Digest})
	refused(t, "another digest", err, fault.Conflict, "policy_digest does not match the version: read it again")
	third := w.activate(red, "payments")
	by := func(kind, principal string, v policystore.Version) ledgertest.Statement {
		s := statement(kind, v)
		s.Principal = principal
		return s
	}
	want := []ledgertest.Statement{
		by("ledger_policy_activated", ann, one),
		by("ledger_policy_archived", ann, one), by("ledger_policy_activated", ann, two),
		by("ledger_policy_archived", ben, two), by("ledger_policy_activated", ben, one),
		by("ledger_policy_archived", ann, one), by("ledger_policy_activated", ann, third),
	}
	if got := w.Audit(t, red); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := w.get(blue, "payments", 0).State; got != policystore.Draft {
		t.Errorf("blue: got %s", got)
	}
}

func TestDeactivate(t *testing.T) {
	const inactive = "The policy is not active"
	w := newWorld(t)
	for _, tenant := range []id.Tenant{red, blue} {
		w.create(tenant, "payments", "acme.pay")
		w.create(tenant, "mails", "acme.mail")
		w.activate(tenant, "payments")
	}
	deactivate := func(policyID string) error {
		_, err := w.book.Deactivate(t.Context(), red, ben, policyID)
		return err
	}
	refused(t, "a draft", deactivate("mails"), fault.Conflict, inactive)
	refused(t, "unknown", deactivate("nothing"), fault.NotFound, "Not found")
	w.Store.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Refused })
	if deactivate("payments") == nil {
		t.Fatal("the append did not fail")
	}
	w.Store.Fail(nil)
	w.mustDecide(red, "acme.pay", "payments/1/r deny")

	w.draft(red, "payments", `{"name":"Second"}`)
	archived, err := w.book.Deactivate(t.Context(), red, ben, "payments")
	if err != nil || archived.Version != 1 || archived.State != policystore.Archived || archived.ArchivedAt == 0 {
		t.Fatalf("got %+v, %v", archived, err)
	}
	w.mustDecide(red, "acme.pay", "none/0/none allow")
	w.mustDecide(blue, "acme.pay", "payments/1/r deny")
	refused(t, "again", deactivate("payments"), fault.Conflict, inactive)
	if got := w.get(red, "payments", 0); got.State != policystore.Draft || got.Version != 2 {
		t.Errorf("got %+v", got)
	}
	statements := w.Audit(t, red)
	want := statement("ledger_policy_archived", archived)
	want.Principal = ben
	if last := statements[len(statements)-1]; len(statements) != 2 || last != want {
		t.Errorf("got %+v, want last %+v", statements, want)
	}
	w.activate(red, "payments")
	w.mustDecide(red, "acme.pay", "payments/2/r deny")
}

// twoPeople is the setting of red that requires two people.
type twoPeople struct{}

func (twoPeople) PublishesPolicies(context.Context, *log.State) (bool, error) { return false, nil }

func (twoPeople) TwoPersonPolicy(_ context.Context, s *log.State) (bool, error) {
	return s.Identity().Tenant == red, nil
}

func TestTwoPersonPolicy(t *testing.T) {
	const own = "You changed this version last: another person has to activate it"
	w := newWorld(t)
	w.book = policystore.New(policystore.Options{
		Records: w.store, Events: w.SystemEvents, Clock: w.Clock, Settings: twoPeople{},
	})
	secondPerson := func(what string, err error, message string) {
		t.Helper()
		refused(t, what, err, fault.Conflict, message)
		if got := fault.Of(err).Code; got != "second_person" {
			t.Errorf("%s: got code %q", what, got)
		}
	}
	activate := func(principal string, version uint64) error {
		_, err := w.book.ActivateVersion(t.Context(), red, principal,
			policystore.Activation{PolicyID: "payments", Version: version})
		return err
	}
	w.create(red, "payments", "acme.pay")
	secondPerson("the author", activate(ann, 0), own)
	if _, err := w.book.Draft(t.Context(), red, ben, "payments", []byte(`{"default":"deny"}`)); err != nil {
		t.Fatal(err)
	}
	secondPerson("the last author", activate(ben, 1), own)
	if err := activate(ann, 1); err != nil { // he wrote it first, and she changed it last
		t.Fatal(err)
	}
	w.draft(red, "payments", `{"default":"allow"}`)
	if err := activate(ben, 0); err != nil {
		t.Fatal(err)
	}
	secondPerson("back to the own version", activate(ben, 1), own)
	_, err := w.book.Deactivate(t.Context(), red, ben, "payments")
	secondPerson("no policy", err,
		"Policies of this organization need two people: activate a version that another person has changed")
	w.mustDecide(red, "acme.other", "payments/2/default allow")

	w.create(blue, "payments", "acme.pay")
	w.activate(blue, "payments")
	if _, err := w.book.Deactivate(t.Context(), blue, ann, "payments"); err != nil {
		t.Errorf("blue: got %v", err)
	}
}

// A version as shown is a valid patch of it.
func TestDraftFromShownVersion(t *testing.T) {
	const changed = "The policy was changed in the meantime: read it again, or omit version and policy_digest"
	w := newWorld(t)
	one := w.create(red, "payments", "acme.pay")
	shown := `{"policy_id":"payments","version":1,"state":"draft","policy_digest":"` + one.Digest.String() +
		`","default":"deny","written_at":"x","written_by":7,"activated_at":null,"archived_at":null}`
	if two := w.draft(red, "payments", shown); two.Version != 1 || two.Digest == one.Digest {
		t.Errorf("got %+v", two)
	}
	for name, tc := range map[string]struct {
		patch   string
		kind    fault.Kind
		message string
	}{
		"older state":   {shown, fault.Conflict, changed},
		"newer version": {`{"version":2}`, fault.Conflict, changed},
		"fraction":      {`{"version":1.5}`, fault.Invalid, "version must be a whole number from 1"},
		"digest":        {`{"policy_digest":"ab"}`, fault.Invalid, "policy_digest must be 64 hex digits"},
	} {
		_, err := w.book.Draft(t.Context(), red, ann, "payments", []byte(tc.patch))
		refused(t, name, err, tc.kind, tc.message)
	}
	w.draft(red, "payments", `{"version":1,"state":"archived","policy_digest":null,"name":"Third"}`)
}
