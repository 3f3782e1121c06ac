package account_test

import (
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

const noAccount = "No account belongs to this sign-in: ask for an invitation"

func TestAuthenticateSubject(t *testing.T) {
	w := newWorld(t)
	accounts := w.open()
	ann, bob := w.ensure("ann@example.com", ""), w.ensure("bob@example.com", "")
	carl := w.ensure("carl@example.com", password)
	at := func(issuer, name, email string) account.Subject {
		return account.Subject{Issuer: "https://" + issuer + ".example", Name: name, Email: email}
	}
	for _, step := range []struct {
		name    string
		subject account.Subject
		want    account.ID // "": refused
	}{
		{"without an address before any link", at("red", "1", ""), ""},
		{"an unknown address", at("red", "1", "eve@example.com"), ""},
		{"a malformed address", at("red", "1", "ann@@example.com"), ""},
		{"the address of ann", at("red", "1", "Ann@Example.com"), ann.ID},
		{"the same person without an address", at("red", "1", ""), ann.ID},
		{"the same person with the address of bob", at("red", "1", "bob@example.com"), ann.ID},
		{"another person without an address", at("red", "2", ""), ""},
		{"a subject of the same name at another provider", at("blue", "1", ""), ""},
		{"that one with the address of bob", at("blue", "1", "bob@example.com"), bob.ID},
		{"issuer and name that join to the same text", at("red", "\x001", ""), ""},
	} {
		got, err := accounts.AuthenticateSubject(t.Context(), step.subject, account.Visit{})
		if step.want == "" {
			refused(t, step.name, err, fault.Forbidden, noAccount)
			continue
		}
		if err != nil || got.ID != step.want {
			t.Errorf("%s: got %s, %v, want %s", step.name, got.ID, err, step.want)
		}
	}
	for name, tc := range map[string]struct {
		subject account.Subject
		want    account.Account
	}{
		"an account with a password":               {at("red", "4", "carl@example.com"), carl},
		"a second person with the address of ann":  {at("red", "3", "ann@example.com"), ann},
		"another provider with the address of ann": {at("blue", "9", "ann@example.com"), ann},
	} {
		got, err := accounts.AuthenticateSubject(t.Context(), tc.subject, account.Visit{})
		if fault.Of(err).Code != "link_required" || fault.Of(err).Kind != fault.Unauthorized || got.ID != tc.want.ID {
			t.Errorf("%s: got %v, %v", name, got.ID, err)
		}
	}
	got, err := accounts.LinkSubject(t.Context(), at("red", "4", "carl@example.com"), carl, account.Visit{})
	if err != nil || got.ID != carl.ID || got.Generation() != carl.Generation() {
		t.Errorf("linked: got %+v, %v", got, err)
	}
	if got, err := accounts.AuthenticateSubject(t.Context(), at("red", "4", ""), account.Visit{}); err != nil || got.ID != carl.ID {
		t.Errorf("the linked one: got %v, %v", got.ID, err)
	}
	if err := accounts.SetPassword(t.Context(), "carl@example.com", "another password"); err != nil {
		t.Fatal(err)
	}
	_, err = accounts.LinkSubject(t.Context(), at("red", "5", "carl@example.com"), carl, account.Visit{})
	refused(t, "an account that was changed", err, fault.Conflict, "The account was changed in the meantime")
}

// Two concurrent first sign-ins create one account.
func TestAuthenticateSubjectAtOnce(t *testing.T) {
	w := newWorld(t)
	accounts := w.open()
	ann := w.ensure("ann@example.com", "")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := accounts.AuthenticateSubject(t.Context(),
				account.Subject{Issuer: "https://red.example", Name: "1", Email: "ann@example.com"}, account.Visit{})
			if err != nil || got.ID != ann.ID {
				t.Errorf("got %s, %v, want %s", got.ID, err, ann.ID)
			}
		})
	}
	all.Wait()
}
