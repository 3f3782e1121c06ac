package account_test

import (
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// change rewrites a membership of an account as modified by change.
func (w *world) change(t id.Tenant, who account.ID, change func(*account.Membership)) {
	w.t.Helper()
	all, err := w.accounts.Members(w.t.Context(), t)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range all {
		if m.Account != who {
			continue
		}
		change(&m.Membership)
		record, err := m.Put()
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.store.Write(w.t.Context(), t, []storage.Change{record}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A suspended membership has no effect from the next request on, on every node. Other memberships are unaffected.
func TestSuspendedMembership(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.ensure(email, password), w.ensure("bob@example.com", password)
	w.join(red, ann.ID, account.Owner)
	w.join(red, bob.ID, account.Owner)
	w.join(blue, ann.ID, account.Owner)
	here, there, his := w.openSession(ann, red), w.openSession(ann, blue), w.openSession(bob, red)
	elsewhere := w.open()
	if _, err := elsewhere.Session(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	w.change(red, ann.ID, func(m *account.Membership) { m.Suspended = true })
	w.over("here", w.accounts, here)
	w.over("elsewhere", elsewhere, here)
	for name, token := range map[string]string{"of another organization": there, "of another person": his} {
		if _, err := w.accounts.Session(t.Context(), token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.accounts.Membership(t.Context(), red, ann.ID)
	refused(t, "membership", err, fault.NotFound, "Not found")
	_, _, err = w.accounts.Open(t.Context(), ann, red)
	refused(t, "open", err, fault.NotFound, "Not found")
	_, err = w.accounts.Accept(t.Context(), red, ann.ID)
	refused(t, "accept", err, fault.NotFound, "Not found")
	effective, err := w.accounts.Memberships(t.Context(), ann.ID)
	if err != nil || len(effective) != 1 || effective[0].Tenant != blue {
		t.Errorf("memberships: got %v, %v", effective, err)
	}
	places, err := w.accounts.Places(t.Context(), ann.ID)
	if err != nil || len(places) != 2 || places[0].Tenant != blue || !places[1].Suspended {
		t.Errorf("places: got %v, %v", places, err)
	}
}

// A role counts from the next request on, on every node. A session that began with another membership ends.
func TestRoleOfASessionIsTheOneOfNow(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token, elsewhere := w.openSession(ann, red), w.open()
	if _, err := elsewhere.Session(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	w.change(red, ann.ID, func(m *account.Membership) { m.Role = account.Auditor })
	for name, accounts := range map[string]*account.Accounts{"here": w.accounts, "elsewhere": elsewhere} {
		if s, err := accounts.Session(t.Context(), token); err != nil || s.Role != account.Auditor {
			t.Errorf("%s: got %+v, %v", name, s, err)
		}
	}
	w.change(red, ann.ID, func(m *account.Membership) { m.ID = "mem_another" })
	w.over("another membership", w.accounts, token)
}

// Records of older programs have no suspended member and, for sessions, no membership.
func TestOlderRecordsAreRead(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	old := storage.Change{Kind: "membership", Key: string(ann.ID), If: storage.AnyVersion,
		Value: []byte(`{"membership_id":"mem_old","role":"approver","since":"2026-01-02T03:04:05.000Z"}`)}
	if err := w.store.Write(t.Context(), red, []storage.Change{old}); err != nil {
		t.Fatal(err)
	}
	m, err := w.accounts.Membership(t.Context(), red, ann.ID)
	if err != nil || m.ID != "mem_old" || m.Role != account.Approver || m.Suspended || m.Offered {
		t.Fatalf("got %+v, %v", m, err)
	}
	all, err := w.accounts.Members(t.Context(), red)
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	same, err := all[0].Put()
	if err != nil || string(same.Value) != string(old.Value) {
		t.Errorf("written again: got %s, %v", same.Value, err)
	}
}
