package account_test

import (
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Only members with a role that votes are counted: no offers, no suspended members and no other organization's.
func TestCountVoters(t *testing.T) {
	w := newWorld(t)
	const red, blue = id.Tenant(1), id.Tenant(2)
	for i, role := range account.Roles() {
		w.join(red, account.ID("acc_"+string(rune('a'+i))), role)
	}
	w.join(blue, "acc_a", account.Owner)
	offer, _, err := w.accounts.NewOffer(t.Context(), red, "acc_offered", account.Owner)
	if err == nil {
		err = w.store.Write(t.Context(), red, []storage.Change{offer})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.join(red, "acc_suspended", account.Admin)
	all, err := w.accounts.Members(t.Context(), red)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Account == "acc_suspended" {
			m.Suspended = true
			change, err := m.Put()
			if err == nil {
				err = w.store.Write(t.Context(), red, []storage.Change{change})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		tenant       id.Tenant
		enough, want int
	}{
		"owner, admin, approver":    {red, 100, 3},
		"no further than enough":    {red, 2, 2},
		"the other organization":    {blue, 100, 1},
		"an organization of nobody": {7, 100, 0},
	} {
		if got, err := w.accounts.CountVoters(t.Context(), tt.tenant, tt.enough); err != nil || got != tt.want {
			t.Errorf("%s: got %d, %v, want %d", name, got, err, tt.want)
		}
	}
}
