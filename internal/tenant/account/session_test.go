package account_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

func (w *world) openSession(who account.Account, t id.Tenant) string {
	w.t.Helper()
	token, _, err := w.accounts.Open(w.t.Context(), who, t)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func (w *world) over(name string, accounts *account.Accounts, token string) {
	w.t.Helper()
	_, err := accounts.Session(w.t.Context(), token)
	refused(w.t, name, err, fault.Unauthorized, "Not signed in")
}

func TestSession(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	m := w.join(red, ann.ID, account.Admin)
	w.join(blue, ann.ID, account.Member)
	token, opened, err := w.accounts.Open(t.Context(), ann, red)
	if err != nil {
		t.Fatal(err)
	}
	want := account.Session{
		Account: ann.ID, Email: email, ApprovalMail: true, Tenant: red, MembershipID: m.ID, Role: account.Admin,
		ExpiresAt: id.InstantOf(w.clock().Add(12 * time.Hour)),
		ID:        opened.ID, FactorAt: id.InstantOf(w.clock()),
	}
	got, err := w.accounts.Session(t.Context(), token)
	if err != nil || *got != want || *opened != want {
		t.Errorf("got %+v and %+v, %v, want %+v", got, opened, err, want)
	}
	other, err := w.accounts.Session(t.Context(), w.openSession(ann, blue))
	if err != nil || other.Tenant != blue || other.Role != account.Member {
		t.Errorf("got %+v, %v", other, err)
	}
	_, _, err = w.accounts.Open(t.Context(), ann, 13)
	refused(t, "no member", err, fault.NotFound, "Not found")
	for name, token := range map[string]string{
		"empty": "", "short": token[:42], "long": token + "a", "another": strings.Repeat("a", 43), "very long": strings.Repeat(token, 1000),
	} {
		w.over(name, w.accounts, token)
	}
}

func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(w *world, token string){
		"closed": func(w *world, token string) {
			if err := w.accounts.Close(w.t.Context(), token); err != nil {
				w.t.Error(err)
			}
		},
		"over": func(w *world, _ string) { w.pass(12 * time.Hour) },
		"another password": func(w *world, _ string) {
			if err := w.accounts.SetPassword(w.t.Context(), email, "another password"); err != nil {
				w.t.Error(err)
			}
		},
		"no member any more": func(w *world, _ string) {
			ann, _ := w.accounts.Find(w.t.Context(), email)
			gone := storage.Change{Kind: "membership", Key: string(ann.ID), If: storage.AnyVersion}
			if err := w.store.Write(w.t.Context(), red, []storage.Change{gone}); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ann, bob := w.ensure(email, password), w.ensure("bob@example.com", password)
			w.join(red, ann.ID, account.Owner)
			w.join(blue, bob.ID, account.Owner)
			token, other := w.openSession(ann, red), w.openSession(bob, blue)
			elsewhere := w.open()
			for _, accounts := range []*account.Accounts{w.accounts, elsewhere} {
				if _, err := accounts.Session(t.Context(), token); err != nil {
					t.Fatal(err)
				}
			}
			end(w, token)
			w.over("here", w.accounts, token)
			if _, err := w.accounts.Session(t.Context(), other); (err == nil) == (name == "over") {
				t.Errorf("the other session: %v", err)
			}
			if name == "closed" { // no other node is notified
				w.pass(time.Second)
			}
			w.over("elsewhere", elsewhere, token)
			if err := w.accounts.Close(t.Context(), token); err != nil {
				t.Errorf("close again: %v", err)
			}
		})
	}
}

// All sessions of an account end with its password, at the same instant and on all nodes that know them. Those of
// another account stay.
func TestAnotherPasswordEndsAllSessionsOfTheAccount(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.ensure(email, password), w.ensure("bob@example.com", password)
	for _, tenant := range []id.Tenant{red, blue} {
		w.join(tenant, ann.ID, account.Owner)
		w.join(tenant, bob.ID, account.Owner)
	}
	nodes := []*account.Accounts{w.accounts, w.open(), w.open()}
	hers := []string{w.openSession(ann, red), w.openSession(ann, blue), w.openSession(ann, red)}
	his := w.openSession(bob, red)
	for _, node := range nodes {
		for _, token := range append(hers, his) {
			if _, err := node.Session(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nodes[2].SetPassword(t.Context(), email, "another password"); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		for _, token := range hers {
			w.over("hers", node, token)
		}
		if _, err := node.Session(t.Context(), his); err != nil {
			t.Errorf("the neighbour's: %v", err)
		}
	}
}

// A session opened with a former password does not exist any more.
func TestPasswordChangedBetweenSignInAndOpen(t *testing.T) {
	w := newWorld(t)
	w.join(red, w.ensure(email, password).ID, account.Owner)
	ann := w.mustSignIn(email, password)
	if err := w.accounts.SetPassword(t.Context(), email, "another password"); err != nil {
		t.Fatal(err)
	}
	w.over("old password", w.accounts, w.openSession(ann, red))
	if _, err := w.accounts.Session(t.Context(), w.openSession(w.mustSignIn(email, "another password"), red)); err != nil {
		t.Error(err)
	}
}

func TestSetPasswordRefuses(t *testing.T) {
	w := newWorld(t)
	refused(t, "unknown", w.accounts.SetPassword(t.Context(), email, password), fault.NotFound, "Not found")
	w.ensure(email, password)
	refused(t, "short", w.accounts.SetPassword(t.Context(), email, "short"), fault.Invalid, "The password must have at least 10 characters and at most 1024 bytes")
	w.mustSignIn(email, password)
}

// Expired sessions are removed when new ones are opened.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	for range 20 {
		w.openSession(ann, red)
	}
	w.pass(13 * time.Hour)
	for _, want := range []int{5, 2} { // 20 - 16 + 1, then 4 fewer and one more
		token := w.openSession(ann, red)
		for _, kind := range []storage.Kind{"session", "session_end"} {
			records, err := w.store.Scan(t.Context(), id.Service, kind, "", "", 100)
			if err != nil || len(records) != want {
				t.Errorf("%s: got %d, %v, want %d", kind, len(records), err, want)
			}
			for _, r := range records {
				if strings.Contains(r.Key+string(r.Value), token) {
					t.Error("the store holds a token")
				}
			}
		}
	}
}

func BenchmarkSession(b *testing.B) {
	w := newWorld(b)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token := w.openSession(ann, red)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.accounts.Session(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
