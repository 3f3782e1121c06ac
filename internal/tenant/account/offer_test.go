package account_test

import (
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// offer writes the record by which an organization offers a membership.
func (w *world) offer(who account.ID) account.Membership {
	w.t.Helper()
	change, m, err := w.accounts.NewOffer(w.t.Context(), blue, who, account.Owner)
	if err == nil {
		err = w.store.Write(w.t.Context(), blue, []storage.Change{change})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// An offer has no effect until the account accepts: it is not a membership, opens no session and is not in the list.
// From then on it is a membership.
func TestOffer(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.ensure("ann@example.com", password), w.ensure("bob@example.com", password)
	offered := w.offer(ann.ID)
	_, err := w.accounts.Membership(t.Context(), blue, ann.ID)
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("membership: got %v, want not found", err)
	}
	if _, _, err := w.accounts.Open(t.Context(), ann, blue); !fault.Is(err, fault.NotFound) {
		t.Errorf("session: got %v, want not found", err)
	}
	if all, err := w.accounts.Memberships(t.Context(), ann.ID); err != nil || len(all) != 0 {
		t.Errorf("memberships: got %v, %v; want none", all, err)
	}
	if places, err := w.accounts.Places(t.Context(), ann.ID); err != nil || len(places) != 1 || !places[0].Offered || places[0].ID != offered.ID {
		t.Errorf("places: got %+v, %v", places, err)
	}
	if _, err := w.accounts.Accept(t.Context(), blue, bob.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another's offer: got %v, want not found", err)
	}
	w.pass(time.Hour)
	var group sync.WaitGroup
	for range 4 { // concurrent sign-ins
		group.Go(func() {
			m, err := w.accounts.Accept(t.Context(), blue, ann.ID)
			if err != nil || m.Offered || m.ID != offered.ID || m.Role != account.Owner || m.Since <= offered.Since {
				t.Errorf("accepted: got %+v, %v", m, err)
			}
		})
	}
	group.Wait()
	if _, _, err := w.accounts.Open(t.Context(), ann, blue); err != nil {
		t.Errorf("session: %v", err)
	}
}

// A caller that names a known address with a password is refused, whatever the password, and the account is unchanged.
func TestOwner(t *testing.T) {
	w := newWorld(t)
	owner := func(email, password string) (bool, error) {
		_, known, err := w.accounts.Owner(t.Context(), email, password)
		return known, err
	}
	if known, err := owner("ann@example.com", password); known || err != nil {
		t.Errorf("new: got %v, %v", known, err)
	}
	if known, err := owner("ann@example.com", password); known || err != nil {
		t.Errorf("the same call again: got %v, %v", known, err)
	}
	ann, err := w.accounts.Find(t.Context(), "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(name, email, password string) {
		t.Helper()
		if _, err := owner(email, password); err == nil || fault.Of(err).Kind != fault.Conflict || fault.Of(err).Code != "account_known" {
			t.Errorf("%s: got %v, want account_known", name, err)
		}
	}
	refuse("another password", "ANN@example.com", "another password")
	if known, err := owner("ann@example.com", ""); !known || err != nil {
		t.Errorf("no password: got %v, %v; want known", known, err)
	}
	w.offer(ann.ID)
	refuse("the right password of one who has a place", "ann@example.com", password)

	if known, err := owner("bob@example.com", ""); known || err != nil {
		t.Errorf("new without a password: got %v, %v", known, err)
	}
	if known, err := owner("bob@example.com", ""); known || err != nil {
		t.Errorf("the same call again: got %v, %v", known, err)
	}
	refuse("a password for an account without one", "bob@example.com", password)
}
