package records_test

import (
	"context"
	"errors"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// The claim of a secret is stored before its object, and remains unless the object was certainly not stored.
func TestClaimOfACreation(t *testing.T) {
	unknown := fault.New(fault.OutcomeUnknown, "The change may have taken effect: check before you retry")
	for name, tt := range map[string]struct {
		err    error
		cancel bool // the request ends during the creation
		stays  bool
	}{
		"stored":                    {nil, false, true},
		"refused":                   {fault.New(fault.Conflict, "Too many"), false, false},
		"refused, request over":     {context.Canceled, true, false},
		"the store takes nothing":   {fault.New(fault.Unavailable, "Unavailable"), false, false},
		"unknown":                   {unknown, false, true},
		"unknown, in another error": {errors.Join(errors.New("change links"), unknown), false, true},
		"unknown, request over":     {unknown, true, true},
	} {
		store, secret, other := storagetest.NewModel(), id.Hash{1}, id.Hash{2}
		claims := records.NewClaims[thing](store, "claim", "Things can't be read")
		if err := claims.Create(t.Context(), other, thing{2}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := claims.Create(ctx, secret, thing{1}, func() error {
			if c, err := claims.Find(ctx, secret); err != nil || !c.Exists() || c.Value.N != 1 {
				t.Errorf("%s: the object is stored without its claim: got %+v, %v", name, c, err)
			}
			if tt.cancel {
				cancel()
			}
			return tt.err
		})
		cancel()
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: got %v, want %v", name, err, tt.err)
		}
		if c, err := claims.Find(t.Context(), secret); err != nil || c.Exists() != tt.stays {
			t.Errorf("%s: got %+v, %v; want a claim: %t", name, c, err, tt.stays)
		}
		if c, err := claims.Find(t.Context(), other); err != nil || !c.Exists() {
			t.Errorf("%s: the claim of another secret: got %+v, %v", name, c, err)
		}
		claims.Remove(t.Context(), []id.Hash{secret, other, {3}})
		if left, err := store.Scan(t.Context(), id.Service, "claim", "", "", 9); err != nil || len(left) != 0 {
			t.Errorf("%s: removed: got %v, %v", name, left, err)
		}
	}
}

// Without a claim, nothing is created.
func TestClaimThatIsNotStored(t *testing.T) {
	store := storagetest.NewModel()
	store.Break()
	err := records.NewClaims[thing](store, "claim", "Things can't be read").Create(t.Context(), id.Hash{1}, thing{1}, func() error {
		t.Error("created without a claim")
		return nil
	})
	if !errors.Is(err, storage.ErrBroken) || !fault.Is(err, fault.Unavailable) || fault.Of(err).Message != "Things can't be read" {
		t.Errorf("got %v", err)
	}
}
