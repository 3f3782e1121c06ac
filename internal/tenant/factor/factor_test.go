package factor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const origin = "https://log.example"

// world has the factors of ann and bob in a store.
type world struct {
	*factor.Factors
	t        *testing.T
	store    storage.Engine
	now      time.Time
	accounts *account.Accounts
	ann, bob account.Account
}

// onEach runs a test on each engine.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := &world{t: t, store: open(t), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
		clock := func() time.Time { return w.now }
		keyring, err := seal.NewKeyring(seal.NewKey())
		if err != nil {
			t.Fatal(err)
		}
		accounts := account.New(account.Options{Records: w.store, Clock: clock,
			Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}, Limits: account.Limits{AccountBurst: 1000},
			Factors: func() account.Factors { return w.Factors }})
		w.Factors, err = factor.New(factor.Options{Records: w.store, Accounts: accounts, Sealer: keyring,
			PublicURL: origin, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		for email, who := range map[string]*account.Account{"ann@example.com": &w.ann, "bob@example.com": &w.bob} {
			if *who, _, err = accounts.Ensure(t.Context(), email, "correct horse battery"); err != nil {
				t.Fatal(err)
			}
		}
		w.accounts = accounts
		test(t, w)
	})
}

func (w *world) options(begun factor.Begun, err error) []byte {
	w.t.Helper()
	text, failed := json.Marshal(begun.Options)
	if err != nil || failed != nil {
		w.t.Fatal(err, failed)
	}
	return text
}

// register gives an account a passkey.
func (w *world) register(who account.Account) *passkeytest.Authenticator {
	w.t.Helper()
	key := passkeytest.New(w.t, origin)
	begun, err := w.BeginCreation(w.t.Context(), who)
	made, failed := w.CheckCreation(begun.Cookie, "key", []byte(key.Create(w.options(begun, err))))
	if failed != nil {
		w.t.Fatal(failed)
	}
	if _, _, err = w.Add(w.t.Context(), w.current(who), made, account.Visit{}); err != nil {
		w.t.Fatal(err)
	}
	return key
}

// current returns an account as it is stored now.
func (w *world) current(who account.Account) account.Account {
	w.t.Helper()
	found, err := w.accounts.ByID(w.t.Context(), who.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// answer returns a passkey's answer to a new challenge.
func (w *world) answer(key *passkeytest.Authenticator) (cookie string, answer []byte) {
	w.t.Helper()
	begun, err := w.BeginUse()
	return begun.Cookie, []byte(key.Use(w.options(begun, err)))
}

// Of many concurrent uses of one answer, exactly one counts. Concurrent uses of two passkeys both count.
func TestUseRaced(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		key, other, bobs := w.register(w.ann), w.register(w.ann), w.register(w.bob)
		cookie, answer := w.answer(key)
		const calls = 4
		errs := make([]error, calls)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() { _, errs[i] = w.Use(t.Context(), cookie, answer, account.Visit{}) })
		}
		group.Wait()
		good := 0
		for _, err := range errs {
			switch {
			case err == nil:
				good++
			case !fault.Is(err, fault.Unauthorized):
				t.Errorf("got %v", err)
			}
		}
		if good != 1 {
			t.Errorf("%d uses count", good)
		}
		for _, k := range []*passkeytest.Authenticator{key, other, bobs} {
			cookie, answer := w.answer(k)
			group.Go(func() {
				if _, err := w.Use(t.Context(), cookie, answer, account.Visit{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
}

// brokenAccounts is a store whose accounts cannot be read for a while.
type brokenAccounts struct {
	storage.Engine
	broken bool
}

func (s *brokenAccounts) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if s.broken && kind == "account" {
		return storage.Record{}, storage.ErrUnavailable
	}
	return s.Engine.Get(ctx, t, kind, key)
}

// An answer whose account cannot be read is not used up: it counts when the account can be read again.
func TestUseIsNotSpentByAFailure(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		key := w.register(w.ann)
		cookie, answer := w.answer(key)
		store := &brokenAccounts{Engine: w.store, broken: true}
		o := w.Options
		o.Records = store
		var factors *factor.Factors
		o.Accounts = account.New(account.Options{Records: store, Clock: o.Clock,
			Factors: func() account.Factors { return factors }})
		var err error
		factors, err = factor.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := factors.Use(t.Context(), cookie, answer, account.Visit{}); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("without the account: got %v", err)
		}
		store.broken = false
		who, err := factors.Use(t.Context(), cookie, answer, account.Visit{})
		if err != nil || who.ID != w.ann.ID {
			t.Errorf("got %v, %v, want %v", who.ID, err, w.ann.ID)
		}
	})
}

// Of many concurrent uses of one recovery code, exactly one counts. The other account has its own codes.
func TestCodeRaced(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		_, codes, err := w.MakeCodes(t.Context(), w.ann, account.Visit{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.MakeCodes(t.Context(), w.bob, account.Visit{}); err != nil {
			t.Fatal(err)
		}
		from := netip.MustParseAddr("192.0.2.1")
		errs := make([]error, 4)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() { errs[i] = w.UseCode(t.Context(), w.ann, codes[0], from, account.Visit{}) })
		}
		group.Wait()
		good := 0
		for _, err := range errs {
			if err == nil {
				good++
			} else if !fault.Is(err, fault.Unauthorized) {
				t.Errorf("got %v", err)
			}
		}
		if good != 1 {
			t.Errorf("%d uses count", good)
		}
		for who, want := range map[account.ID]int{w.ann.ID: 9, w.bob.ID: 10} {
			if s, err := w.Summary(t.Context(), who); err != nil || s.CodesLeft != want {
				t.Errorf("got %+v, %v, want %d", s, err, want)
			}
		}
	})
}

// If the two passkeys of an account without a password are removed concurrently, one stays.
func TestLastWayInRaced(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		begun, err := w.BeginNew("eve@example.com", "")
		key := passkeytest.New(t, origin)
		made, failed := w.CheckCreation(begun.Cookie, "first", []byte(key.Create(w.options(begun, err))))
		if failed != nil {
			t.Fatal(failed)
		}
		eve, err := w.Create(t.Context(), "eve@example.com", "Eve", account.Claim{By: account.ProvedByMail}, made)
		if err != nil {
			t.Fatal(err)
		}
		w.register(eve)
		listed, err := w.Summary(t.Context(), eve.ID)
		if err != nil || len(listed.Passkeys) != 2 {
			t.Fatalf("got %+v, %v", listed, err)
		}
		eve = w.current(eve)
		var group sync.WaitGroup
		for _, k := range listed.Passkeys {
			group.Go(func() { w.Remove(t.Context(), eve, k.ID, account.Visit{}) })
		}
		group.Wait()
		if listed, err = w.Summary(t.Context(), eve.ID); err != nil || len(listed.Passkeys) != 1 {
			t.Errorf("got %+v, %v", listed, err)
		}
	})
}

// A request whose session has ended meanwhile, for example because the address was taken over, changes no factor.
func TestEndedSessionsChangeNoFactors(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.register(w.ann)
		before := w.current(w.ann)
		begun, err := w.BeginCreation(t.Context(), before)
		key := passkeytest.New(t, origin)
		made, failed := w.CheckCreation(begun.Cookie, "late", []byte(key.Create(w.options(begun, err))))
		if failed != nil {
			t.Fatal(failed)
		}
		listed, err := w.Summary(t.Context(), w.ann.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.MakeCodes(t.Context(), before, account.Visit{}); err != nil {
			t.Fatal(err)
		}
		_, _, added := w.Add(t.Context(), before, made, account.Visit{})
		_, _, coded := w.MakeCodes(t.Context(), before, account.Visit{})
		_, removed := w.Remove(t.Context(), before, listed.Passkeys[0].ID, account.Visit{})
		for name, err := range map[string]error{"add": added, "codes": coded, "remove": removed} {
			if !fault.Is(err, fault.Unauthorized) {
				t.Errorf("%s: got %v, want fault.Unauthorized", name, err)
			}
		}
		if now, err := w.Summary(t.Context(), w.ann.ID); err != nil || len(now.Passkeys) != 1 {
			t.Errorf("got %+v, %v, want one passkey", now, err)
		}
	})
}

// Used challenges are removed when they have expired.
func TestAnsweredChallengesAreSwept(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		key := w.register(w.ann)
		for range 20 {
			cookie, answer := w.answer(key)
			if _, err := w.Use(t.Context(), cookie, answer, account.Visit{}); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(time.Minute)
		}
		kept, err := w.store.Scan(t.Context(), id.Service, "passkey_answered", "", "", 1000)
		if err != nil || len(kept) > 6 {
			t.Errorf("got %d records, %v", len(kept), err)
		}
	})
}

// Two people with one address get one account.
func TestCreateRaced(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		errs := make([]error, 3)
		var group sync.WaitGroup
		for i := range errs {
			begun, err := w.BeginNew("eve@example.com", "")
			made, failed := w.CheckCreation(begun.Cookie, fmt.Sprint(i), []byte(passkeytest.New(t, origin).Create(w.options(begun, err))))
			if failed != nil {
				t.Fatal(failed)
			}
			group.Go(func() {
				_, errs[i] = w.Create(t.Context(), "eve@example.com", "", account.Claim{By: account.ProvedByMail}, made)
			})
		}
		group.Wait()
		good := 0
		for _, err := range errs {
			if err == nil {
				good++
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("got %v", err)
			}
		}
		if good != 1 {
			t.Errorf("%d accounts were made", good)
		}
	})
}
