package account_test

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const (
	red  id.Tenant = 11
	blue id.Tenant = 12

	email    = "ann@example.com"
	password = "correct horse battery"
)

// world has accounts on a store in memory, with cheap hashing.
type world struct {
	t        testing.TB
	store    *storagetest.Model
	accounts *account.Accounts

	mu  sync.Mutex
	now time.Time
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, store: storagetest.NewModel(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	w.accounts = w.open()
	return w
}

// open returns the accounts as another process would see them.
func (w *world) open() *account.Accounts {
	return account.New(account.Options{
		Records: w.store, Clock: w.clock,
		Hashing: account.Hashing{MemoryKiB: 64, Passes: 1},
		Limits:  account.Limits{AccountBurst: 3, EverywhereBurst: 5, AddressBurst: 6, Tracked: 64},
	})
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) ensure(email, password string) account.Account {
	w.t.Helper()
	a, _, err := w.accounts.Ensure(w.t.Context(), email, password)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// join makes an account a member, as the ledger of a new organization would.
func (w *world) join(t id.Tenant, who account.ID, role account.Role) account.Membership {
	w.t.Helper()
	change, m, err := w.accounts.NewMembership(w.t.Context(), t, who, role)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.Write(w.t.Context(), t, []storage.Change{change}); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func address(s string) netip.Addr { return netip.MustParseAddr(s) }

func (w *world) signIn(email, password string) (account.Account, error) {
	w.t.Helper()
	return w.accounts.Authenticate(w.t.Context(), email, password, address("192.0.2.1"))
}

func (w *world) mustSignIn(email, password string) account.Account {
	w.t.Helper()
	a, err := w.signIn(email, password)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func refused(t testing.TB, name string, err error, kind fault.Kind, message string) {
	t.Helper()
	if f := fault.Of(err); err == nil || f.Kind != kind || f.Message != message {
		t.Errorf("%s: got %v, want kind %d %q", name, err, kind, message)
	}
}

const wrong = "Invalid e-mail address or password"

func TestEnsure(t *testing.T) {
	w := newWorld(t)
	made := w.ensure("Ann@Example.COM", password)
	if made.Email != email || !made.HasPassword || made.CreatedAt != id.InstantOf(w.clock()) || !strings.HasPrefix(string(made.ID), "acc_") {
		t.Errorf("got %+v", made)
	}
	if again := w.ensure(email, "another password"); !reflect.DeepEqual(again, made) {
		t.Errorf("got %+v, want %+v", again, made)
	}
	if got := w.mustSignIn("ANN@example.com", password); !reflect.DeepEqual(got, made) {
		t.Errorf("got %+v, want %+v", got, made)
	}
	_, err := w.signIn(email, "another password")
	refused(t, "password of the second call", err, fault.Unauthorized, wrong)
	if other := w.ensure("bob@example.com", password); other.ID == made.ID {
		t.Error("two addresses have one account")
	}
}

func TestAccountWithoutAPassword(t *testing.T) {
	w := newWorld(t)
	made := w.ensure(email, "")
	if made.HasPassword {
		t.Errorf("got %+v", made)
	}
	for _, p := range []string{"", password} {
		_, err := w.signIn(email, p)
		refused(t, "no password", err, fault.Unauthorized, wrong)
	}
	// Naming the account again does not give it one.
	w.ensure(email, password)
	_, err := w.signIn(email, password)
	refused(t, "not the one of a later call", err, fault.Unauthorized, wrong)

	w.pass(time.Hour)
	if err := w.accounts.SetPassword(t.Context(), email, password); err != nil {
		t.Fatal(err)
	}
	if got := w.mustSignIn(email, password); got.ID != made.ID {
		t.Errorf("got %+v", got)
	}
}

func TestEnsureAtOnce(t *testing.T) {
	w := newWorld(t)
	ids := make(chan account.ID, 16)
	for i := range cap(ids) {
		go func() {
			a, _, err := w.accounts.Ensure(context.Background(), email, fmt.Sprintf("password %d", i))
			if err != nil {
				t.Error(err)
			}
			ids <- a.ID
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if got := <-ids; got != first {
			t.Errorf("got %s and %s", first, got)
		}
	}
}

func TestRefusedEmailsAndPasswords(t *testing.T) {
	w := newWorld(t)
	const malformed = "The e-mail address is malformed"
	for _, s := range []string{
		"", "ann", "@example.com", "ann@", "a b@example.com", "Ann <ann@example.com>", "<ann@example.com>", " ann@example.com",
		"ann@example.com ", "ann@example.com,bob@example.com", "ann@example.com\r\nBcc: x@example.com", "ann@exa\x00mple.com",
		strings.Repeat("a", 250) + "@example.com",
	} {
		_, _, err := w.accounts.Ensure(t.Context(), s, password)
		refused(t, fmt.Sprintf("%.20q", s), err, fault.Invalid, malformed)
		_, err = w.signIn(s, password)
		if !fault.Is(err, fault.Unauthorized) && !fault.Is(err, fault.RateLimited) {
			t.Errorf("%.20q: got %v, want a uniform refusal", s, err)
		}
	}
	const rule = "The password must have at least 10 characters and at most 1024 bytes"
	for _, s := range []string{"x7K-q2m_9", "ééééééééé", strings.Repeat("a", 1025), "abcdefg\xff"} {
		_, _, err := w.accounts.Ensure(t.Context(), email, s)
		refused(t, fmt.Sprintf("%.20q", s), err, fault.Invalid, rule)
	}
	w.ensure("zoé@example.com", "ééééééééæœ")
	_, err := w.accounts.Find(t.Context(), email)
	refused(t, "account of refused calls", err, fault.NotFound, "Not found")
}

func TestUniformRefusals(t *testing.T) {
	w := newWorld(t)
	w.ensure(email, password)
	w.ensure("nobody@example.com", "")
	for name, tc := range map[string]struct{ email, password string }{
		"wrong":         {email, password + "x"},
		"empty":         {email, ""},
		"very long":     {email, strings.Repeat("a", 1<<16)},
		"unknown":       {"eve@example.com", password},
		"malformed":     {"eve", password},
		"password-less": {"nobody@example.com", password},
	} {
		_, err := w.accounts.Authenticate(t.Context(), tc.email, tc.password, address("192.0.2.7"))
		refused(t, name, err, fault.Unauthorized, wrong)
		w.pass(time.Hour)
	}
}

func TestMemberships(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.ensure(email, password), w.ensure("bob@example.com", password)
	second := w.join(blue, ann.ID, account.Owner)
	w.pass(time.Minute)
	third := w.join(red, ann.ID, account.Approver)
	w.join(red, bob.ID, account.Member)
	// The organization of this one was never created.
	if _, _, err := w.accounts.NewMembership(t.Context(), 13, ann.ID, account.Owner); err != nil {
		t.Fatal(err)
	}
	got, err := w.accounts.Memberships(t.Context(), ann.ID)
	if err != nil || len(got) != 2 || got[0] != second || got[1] != third {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = w.accounts.Membership(t.Context(), blue, bob.ID)
	refused(t, "of the other organization", err, fault.NotFound, "Not found")
}

func TestAccountsFailClosed(t *testing.T) {
	w := newWorld(t)
	w.ensure(email, password)
	w.store.Break()
	_, err := w.signIn(email, password)
	refused(t, "sign in", err, fault.Unavailable, "Accounts can't be read")
	_, err = w.accounts.Session(t.Context(), strings.Repeat("a", 43))
	refused(t, "session", err, fault.Unavailable, "Accounts can't be read")
}

// An account whose stored hash is damaged is an error, not a wrong password.
func TestDamagedHash(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	r, err := w.store.Get(t.Context(), id.Service, "account", string(ann.ID))
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(r.Value), "$argon2id$", "$argon$", 1)
	if err := w.store.Write(t.Context(), id.Service, []storage.Change{{Kind: r.Kind, Key: r.Key, Value: []byte(damaged), If: r.Version}}); err != nil {
		t.Fatal(err)
	}
	_, err = w.accounts.Authenticate(t.Context(), email, password, netip.MustParseAddr("192.0.2.1"))
	refused(t, "damaged", err, fault.Unavailable, "Accounts can't be read")
}
