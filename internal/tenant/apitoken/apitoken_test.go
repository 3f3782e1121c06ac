package apitoken_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has the tokens of two organizations with real accounts.
type world struct {
	*ledgertest.Service
	t        *testing.T
	accounts *account.Accounts
	tokens   *apitoken.Tokens
}

func newWorld(t *testing.T, engine storage.Engine) *world {
	w := &world{Service: ledgertest.On(t, engine), t: t}
	w.open()
	w.Found(t, red)
	w.Found(t, blue)
	return w
}

// open starts again on the stored data.
func (w *world) open() {
	w.accounts = account.New(account.Options{Records: w.Engine, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	w.tokens = apitoken.New(apitoken.Options{
		Records: w.Engine, Events: w.SystemEvents, Members: w.accounts, Clock: w.Clock, Pace: &quota.Quota{Records: w.Engine, Clock: w.Clock},
	})
}

// join makes somebody a member, or a member again.
func (w *world) join(t id.Tenant, who account.ID, role account.Role) {
	w.t.Helper()
	change, _, err := w.accounts.NewMembership(w.t.Context(), t, who, role)
	if err == nil {
		change.If = storage.AnyVersion
		err = w.Engine.Write(w.t.Context(), t, []storage.Change{change})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// change rewrites a membership as modified by change; nil removes it.
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
		record := m.Remove()
		if change != nil {
			change(&m.Membership)
			if record, err = m.Put(); err != nil {
				w.t.Fatal(err)
			}
		}
		if err := w.Engine.Write(w.t.Context(), t, []storage.Change{record}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) wanted(role account.Role) apitoken.Wanted {
	return apitoken.Wanted{Name: "ci", Role: role, ExpiresAt: id.InstantOf(w.Clock().Add(24 * time.Hour))}
}

func (w *world) create(t id.Tenant, who account.ID, role account.Role) (apitoken.ID, string) {
	w.t.Helper()
	made, secret, err := w.tokens.Create(w.t.Context(), t, who, w.wanted(role))
	if err != nil {
		w.t.Fatal(err)
	}
	return made.ID, secret
}

// expect authenticates with a token. kind is the kind of the expected error, or 0 for success.
func (w *world) expect(what, token string, kind fault.Kind, message string) {
	w.t.Helper()
	s, _, err := w.tokens.Authenticate(w.t.Context(), token)
	if message == "" {
		if err != nil || s.Tenant != red || s.Account != "acc_ann" {
			w.t.Errorf("%s: got %+v, %v", what, s, err)
		}
		return
	}
	if !fault.Is(err, kind) || fault.Of(err).Message != message {
		w.t.Errorf("%s: got %v, want %q", what, err, message)
	}
}

const (
	notSignedIn = "Not signed in"
	beyond      = "The token's role exceeds that of its creator"
)

// A token that a previous holder of the account made ends when the account is taken over.
func TestTokenEndsWithItsHolder(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		who, _, err := w.accounts.EnsureInvited(t.Context(), "ann@example.com", "correct horse battery",
			account.ClaimByInvitation(red, false), account.Visit{})
		if err != nil {
			t.Fatal(err)
		}
		w.join(red, who.ID, account.Admin)
		_, token := w.create(red, who.ID, account.Auditor)
		if _, _, err := w.tokens.Authenticate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if _, err := w.accounts.TakeOverByMail(t.Context(), "ann@example.com", account.Visit{}); err != nil {
			t.Fatal(err)
		}
		w.expect("taken over", token, fault.Unauthorized, notSignedIn)
		w.Pass(time.Minute)
		_, later := w.create(red, who.ID, account.Auditor)
		if _, _, err := w.tokens.Authenticate(t.Context(), later); err != nil {
			t.Errorf("a later token: %v", err)
		}
		w.expect("still", token, fault.Unauthorized, notSignedIn)
	})
}

// A token follows its maker: demoted, suspended, reinstated, removed, and a member again.
func TestTokenFollowsItsMaker(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		w.join(red, "acc_ann", account.Admin)
		w.join(blue, "acc_ann", account.Owner)
		w.join(red, "acc_bob", account.Owner)
		_, admin := w.create(red, "acc_ann", account.Admin)
		_, auditor := w.create(red, "acc_ann", account.Auditor)
		w.expect("at first", admin, 0, "")
		w.change(red, "acc_ann", func(m *account.Membership) { m.Role = account.Auditor })
		w.expect("demoted", admin, fault.Forbidden, beyond)
		w.expect("demoted, covered", auditor, 0, "")
		w.change(red, "acc_ann", func(m *account.Membership) { m.Role, m.Suspended = account.Admin, true })
		w.expect("suspended", admin, fault.Unauthorized, notSignedIn)
		w.change(red, "acc_ann", func(m *account.Membership) { m.Suspended = false })
		w.open() // as after a restart
		w.expect("back", admin, 0, "")
		w.change(red, "acc_ann", nil)
		w.expect("removed", admin, fault.Unauthorized, notSignedIn)
		w.join(red, "acc_ann", account.Admin)
		w.expect("a member again", admin, fault.Unauthorized, notSignedIn)
		if left, err := w.tokens.List(t.Context(), red, "acc_ann"); err != nil || len(left) != 0 {
			t.Errorf("list: got %v, %v", left, err)
		}
		name, again := w.create(red, "acc_ann", account.Member)
		for what, err := range map[string]error{
			"another organization's": w.tokens.Delete(t.Context(), blue, "acc_ann", name),
			"another member's":       w.tokens.Delete(t.Context(), red, "acc_bob", name),
		} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: got %v", what, err)
			}
		}
		w.expect("still good", again, 0, "")
		w.Pass(24 * time.Hour)
		w.expect("over", again, fault.Unauthorized, notSignedIn)
		for _, wrong := range []string{"", "alt_", again[:46], again + "A", strings.ToUpper(again), "apl_" + again[4:], "alt_" + strings.Repeat("A", 43)} {
			w.expect("wrong "+wrong, wrong, fault.Unauthorized, notSignedIn)
		}
	})
}

// However many are created concurrently, there are at most MaxTokens, and the statements contain no secret.
func TestManyTokensAtOnce(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t))
	w.join(red, "acc_ann", account.Admin)
	var made, refused atomic.Int64
	var group sync.WaitGroup
	for range 30 {
		group.Go(func() {
			_, secret, err := w.tokens.Create(t.Context(), red, "acc_ann", w.wanted(account.Member))
			switch {
			case err == nil && len(secret) == 47:
				made.Add(1)
			case fault.Is(err, fault.Conflict) && fault.Of(err).Code == "token_limit":
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != apitoken.MaxTokens || refused.Load() != 10 {
		t.Errorf("got %d made and %d refused", made.Load(), refused.Load())
	}
	for _, statement := range w.Audit(t, red) {
		if text := fmt.Sprint(statement); strings.Contains(text, "alt_") || statement.Kind != string(sysevent.TokenCreated) {
			t.Errorf("got %s", text)
		}
	}
}

// The records in the service's own partition follow from those of the organization.
func TestServiceRecords(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t))
	w.join(red, "acc_ann", account.Admin)
	w.create(red, "acc_ann", account.Member)
	w.create(red, "acc_ann", account.Auditor)
	held, err := w.Engine.Get(t.Context(), red, "console_token", "acc_ann")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := apitoken.ServiceRecords(red, held)
	if err != nil || len(claims) != 2 {
		t.Fatal(claims, err)
	}
	for _, c := range claims {
		stored, err := w.Engine.Get(t.Context(), id.Service, c.Kind, c.Key)
		if err != nil || string(stored.Value) != string(c.Value) {
			t.Errorf("got %s, %v; want %s", stored.Value, err, c.Value)
		}
	}
	held.Kind = "policy"
	if claims, err := apitoken.ServiceRecords(red, held); err != nil || claims != nil {
		t.Errorf("of another kind: got %v, %v", claims, err)
	}
}

// A token that is refused after it was claimed leaves no claim behind.
func TestRefusedTokenLeavesNoClaim(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		w.join(red, "acc_ann", account.Admin)
		w.join(blue, "acc_ann", account.Admin)
		w.create(blue, "acc_ann", account.Auditor)
		if err := w.Ledgers.Freeze(t.Context(), red, "for the test"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.tokens.Create(t.Context(), red, "acc_ann", w.wanted(account.Auditor)); err == nil {
			t.Fatal("a frozen ledger took a token")
		}
		claims, err := w.Engine.Scan(t.Context(), id.Service, "console_token_claim", "", "", 10)
		if err != nil || len(claims) != 1 {
			t.Errorf("got %d claims, %v, want that of blue alone", len(claims), err)
		}
	})
}
