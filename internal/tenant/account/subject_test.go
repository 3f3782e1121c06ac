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
	ann, bob := w.ensure("ann@example.com", "correct horse battery"), w.ensure("bob@example.com", "")
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
		{"a second person with the address of ann", at("red", "3", "ann@example.com"), ann.ID},
	} {
		got, err := accounts.AuthenticateSubject(t.Context(), step.subject)
		if step.want == "" {
			refused(t, step.name, err, fault.Forbidden, noAccount)
			continue
		}
		if err != nil || got.ID != step.want {
			t.Errorf("%s: got %s, %v, want %s", step.name, got.ID, err, step.want)
		}
	}
}

// Two first sign-ins at once end in one account.
func TestAuthenticateSubjectAtOnce(t *testing.T) {
	w := newWorld(t)
	accounts := w.open()
	ann := w.ensure("ann@example.com", "correct horse battery")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := accounts.AuthenticateSubject(t.Context(),
				account.Subject{Issuer: "https://red.example", Name: "1", Email: "ann@example.com"})
			if err != nil || got.ID != ann.ID {
				t.Errorf("got %s, %v, want %s", got.ID, err, ann.ID)
			}
		})
	}
	all.Wait()
}
