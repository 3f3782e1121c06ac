package account_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// overtaken is a store in which another call writes first.
type overtaken struct {
	storage.RecordStore
	other func()
}

func (o *overtaken) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	isEmail := func(c storage.Change) bool { return c.Kind == "account_email" }
	if other := o.other; other != nil && slices.ContainsFunc(changes, isEmail) {
		o.other = nil
		other()
	}
	return o.RecordStore.Write(ctx, t, changes)
}

// If an inviter's account gets an address while the operator names that address, the operator's call takes it over.
func TestEnsureIsOvertaken(t *testing.T) {
	for name, claim := range map[string]account.Claim{
		"by the inviter":                  account.ClaimByInvitation(red, false),
		"by the person who read the mail": account.ClaimByInvitation(red, true),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var first account.Account
			store := &overtaken{RecordStore: w.store, other: func() {
				var err error
				first, _, err = w.accounts.EnsureInvited(t.Context(), email, password, claim, account.Visit{})
				if err != nil {
					t.Error(err)
				}
			}}
			accounts := account.New(account.Options{Records: store, Clock: w.clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
			who, made, err := accounts.Ensure(t.Context(), email, "the operator's choice")
			if err != nil || who.ID != first.ID {
				t.Fatalf("got %s, %v, want %s", who.ID, err, first.ID)
			}
			wantPassword, wantProof := "the operator's choice", account.ProvedByOperator
			if claim.By != account.Unproved {
				wantPassword, wantProof = password, claim.By
			}
			if made != (claim.By == account.Unproved) || who.Proof != wantProof {
				t.Errorf("got %s, made %v", who.Proof, made)
			}
			if _, err := w.accounts.Authenticate(t.Context(), email, wantPassword, address("192.0.2.1")); err != nil {
				t.Errorf("%q: %v", wantPassword, err)
			}
		})
	}
}

// An account that an older program stored without a proof gets one when it is read by its id, so that the limits on
// mails and the rule of two people apply to it before its person signs in.
func TestOlderAccountHasAProof(t *testing.T) {
	w := newWorld(t)
	who, _, err := w.accounts.EnsureInvited(t.Context(), email, password, account.ClaimByInvitation(red, false), account.Visit{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := w.store.Get(t.Context(), id.Service, "account", string(who.ID))
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(stored.Value, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "proof")
	value, err := json.Marshal(members)
	if err == nil {
		err = w.store.Write(t.Context(), id.Service, []storage.Change{{Kind: "account", Key: string(who.ID), Value: value, If: stored.Version}})
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, it is stored
		if found, err := w.accounts.ByID(t.Context(), who.ID); err != nil || found.Proof != account.Unproved {
			t.Errorf("got %q, %v", found.Proof, err)
		}
	}
}
