package account_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

func (w *world) session(token string) *account.Session {
	w.t.Helper()
	s, err := w.accounts.Session(w.t.Context(), token)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// A session that is used lives longer, for seven days at most; its records move accordingly.
func TestSessionIsUsed(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token := w.openSession(ann, red)
	began := w.clock()
	for w.clock().Before(began.Add(7*24*time.Hour - 11*time.Hour)) {
		w.session(token)
		w.pass(11 * time.Hour)
	}
	w.session(token)
	w.pass(began.Add(7 * 24 * time.Hour).Sub(w.clock()))
	w.over("after seven days", w.accounts, token)
	w.pass(time.Millisecond)
	w.openSession(ann, red) // sweeps
	if n := w.count("session"); n != 1 {
		t.Errorf("got %d sessions", n)
	}
	if n := w.count("session_end"); n != 1 {
		t.Errorf("got %d ends", n)
	}
	if n := w.count("session_of"); n != 1 {
		t.Errorf("got %d listed", n)
	}
}

func (w *world) count(kind storage.Kind) int {
	w.t.Helper()
	found, err := w.store.Scan(w.t.Context(), 0, kind, "", "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(found)
}

// A session's requests cost at most one write every five minutes.
func TestSessionIsSeenRarely(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token := w.openSession(ann, red)
	w.pass(5*time.Minute - time.Millisecond)
	first := w.session(token)
	if again := w.session(token); again.ExpiresAt != first.ExpiresAt {
		t.Error("written again")
	}
	w.pass(time.Millisecond)
	w.session(token)
	if later := w.session(token); later.ExpiresAt <= first.ExpiresAt {
		t.Errorf("got %v, it was %v", later.ExpiresAt, first.ExpiresAt)
	}
}

func TestStepUp(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token := w.openSession(ann, red)
	if err := w.session(token).CheckFactor(); err != nil {
		t.Errorf("after the sign-in: %v", err)
	}
	w.pass(15*time.Minute - time.Millisecond)
	if err := w.session(token).CheckFactor(); err != nil {
		t.Errorf("in time: %v", err)
	}
	w.pass(time.Millisecond)
	err := w.session(token).CheckFactor()
	refused(t, "late", err, fault.Unauthorized, "Confirm your identity again: step up")
	if fault.Of(err).Code != "step_up" {
		t.Errorf("got %q", fault.Of(err).Code)
	}
	from := netip.MustParseAddr("192.0.2.1")
	_, _, err = w.accounts.StepUp(t.Context(), token, "another password", from, account.Visit{})
	refused(t, "wrong", err, fault.Unauthorized, "Wrong password")
	_, _, err = w.accounts.StepUp(t.Context(), strings.Repeat("a", 43), password, from, account.Visit{})
	refused(t, "no session", err, fault.Unauthorized, "Not signed in")
	ends := w.session(token)
	now, stepped, err := w.accounts.StepUp(t.Context(), token, password, from, account.Visit{})
	if err != nil {
		t.Fatal(err)
	}
	w.over("a copy that was stolen before", w.accounts, token)
	if err := w.session(now).CheckFactor(); err != nil || stepped.StepUpDue || stepped.Tenant != ends.Tenant {
		t.Errorf("got %+v, %v", stepped, err)
	}
	w.pass(12 * time.Hour)
	w.over("idle", w.accounts, now)
}

// Guesses of a password with a stolen session count together with those at the sign-in.
func TestStepUpIsBounded(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token := w.openSession(ann, red)
	from := netip.MustParseAddr("192.0.2.1")
	for range 3 {
		_, _, err := w.accounts.StepUp(t.Context(), token, "a guess of it", from, account.Visit{})
		refused(t, "guess", err, fault.Unauthorized, "Wrong password")
	}
	_, _, err := w.accounts.StepUp(t.Context(), token, password, from, account.Visit{})
	refused(t, "too many", err, fault.RateLimited, "Too many sign-in attempts, try again later")
	_, err = w.accounts.ChangePassword(t.Context(), w.session(token), password, "another password", from, account.Visit{})
	refused(t, "too many", err, fault.RateLimited, "Too many sign-in attempts, try again later")
}

// Of several concurrent calls with one token, exactly one gets the new token.
func TestStepUpRaced(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token := w.openSession(ann, red)
	var group sync.WaitGroup
	tokens := make([]string, 3)
	for i := range tokens {
		group.Go(func() {
			from := netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i))
			tokens[i], _, _ = w.accounts.StepUp(t.Context(), token, password, from, account.Visit{})
		})
	}
	group.Wait()
	if list, err := w.accounts.Sessions(t.Context(), ann.ID); err != nil || len(list) != 1 {
		t.Errorf("got %d sessions, %v; tokens %q", len(list), err, tokens)
	}
	w.over("the first token", w.accounts, token)
}

func TestSwitchSession(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	w.join(blue, ann.ID, account.Member)
	token := w.openSession(ann, red)
	w.pass(time.Hour)
	_, _, err := w.accounts.SwitchSession(t.Context(), token, 13)
	refused(t, "no member", err, fault.NotFound, "Not found")
	now, s, err := w.accounts.SwitchSession(t.Context(), token, blue)
	if err != nil || s.Tenant != blue || s.Role != account.Member || !s.StepUpDue {
		t.Fatalf("got %+v, %v", s, err)
	}
	w.over("the token before", w.accounts, token)
	w.session(now)
}

func TestChangePassword(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.ensure(email, password), w.ensure("bob@example.com", password)
	w.join(red, ann.ID, account.Owner)
	w.join(red, bob.ID, account.Member)
	token, other, his := w.openSession(ann, red), w.openSession(ann, red), w.openSession(bob, red)
	from := netip.MustParseAddr("192.0.2.1")
	for name, c := range map[string]struct {
		current, next string
		kind          fault.Kind
		message       string
	}{
		"wrong":  {"another password", "a stable for the battery", fault.Unauthorized, "Wrong password"},
		"short":  {password, "short", fault.Invalid, "The password must have at least 10 characters and at most 1024 bytes"},
		"common": {password, "1234567890", fault.Invalid, "The password is one of the 100,000 most common"},
		"email":  {password, strings.ToUpper(email), fault.Invalid, "The password must not be the e-mail address or the part before its @"},
		"name":   {password, "organization", fault.Invalid, "The password must not be the organization's name"},
	} {
		_, err := w.accounts.ChangePassword(t.Context(), w.session(token), c.current, c.next, from, account.Visit{}, "Organization")
		refused(t, name, err, c.kind, c.message)
		w.pass(time.Minute)
	}
	who, err := w.accounts.ChangePassword(t.Context(), w.session(token), password, "a stable for the battery", from, account.Visit{Program: "curl"})
	if err != nil {
		t.Fatal(err)
	}
	w.over("this session", w.accounts, token)
	w.over("the other session", w.accounts, other)
	w.session(his)
	w.pass(time.Millisecond) // events of one millisecond have no order
	w.session(w.openSession(who, red))
	if _, err := w.accounts.Authenticate(t.Context(), email, "a stable for the battery", from); err != nil {
		t.Error(err)
	}
	events, err := w.accounts.LoginEvents(t.Context(), ann.ID)
	if err != nil || len(events) != 4 || events[0].Kind != account.SignedIn || events[1].Kind != account.ChangedPassword || events[1].Program != "curl" {
		t.Errorf("got %+v, %v", events, err)
	}
}

// The list shows the sessions of one account, and each can be ended separately.
func TestSessionsOfAnAccount(t *testing.T) {
	w := newWorld(t)
	ann, bob := w.ensure(email, password), w.ensure("bob@example.com", password)
	for _, who := range []account.Account{ann, bob} {
		w.join(red, who.ID, account.Member)
		w.join(blue, who.ID, account.Member)
	}
	first := w.openSession(ann, red)
	w.pass(time.Minute)
	second := w.openSession(ann, blue)
	his := w.openSession(bob, red)
	list, err := w.accounts.Sessions(t.Context(), ann.ID)
	if err != nil || len(list) != 2 || list[0].Tenant != blue || list[1].Tenant != red || list[1].ID != w.session(first).ID {
		t.Fatalf("got %+v, %v", list, err)
	}
	of := func(s *account.Session) func(account.ListedSession) bool {
		return func(l account.ListedSession) bool { return l.ID == s.ID }
	}
	if n, err := w.accounts.EndSessions(t.Context(), ann.ID, account.Visit{}, of(w.session(his))); n != 0 || err != nil {
		t.Errorf("ended a session of another account: %d, %v", n, err)
	}
	if n, err := w.accounts.EndSessions(t.Context(), ann.ID, account.Visit{}, of(w.session(first))); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	w.over("ended", w.accounts, first)
	w.session(second)
	w.session(his)
	if err := w.accounts.Close(t.Context(), second); err != nil {
		t.Error(err)
	}
	if list, err := w.accounts.Sessions(t.Context(), ann.ID); err != nil || len(list) != 0 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// What an account leaves behind is bounded: sessions, their entries and login events.
func TestSessionsAndEventsAreBounded(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	oldest := w.openSession(ann, red)
	w.pass(time.Millisecond)
	second := w.openSession(ann, red)
	for range account.MaxSessions - 1 {
		w.pass(time.Millisecond)
		w.openSession(ann, red)
	}
	w.over("the oldest", w.accounts, oldest)
	w.session(second)
	for _, kind := range []storage.Kind{"session", "session_of", "login_event"} {
		if n := w.count(kind); n != 100 {
			t.Errorf("%s: got %d", kind, n)
		}
	}
	w.pass(time.Millisecond)
	long := account.Visit{Program: strings.Repeat("ü\n\xff", 1000)}
	if _, _, err := w.accounts.OpenFrom(t.Context(), ann, red, long); err != nil {
		t.Fatal(err)
	}
	events, err := w.accounts.LoginEvents(t.Context(), ann.ID)
	if err != nil || len(events) != 100 || len([]rune(events[0].Program)) != 200 || strings.Contains(events[0].Program, "\n") || !utf8.ValidString(events[0].Program) {
		t.Errorf("got %d events, %v", len(events), err)
	}
}

func TestDisplayName(t *testing.T) {
	w := newWorld(t)
	ann := w.ensure(email, password)
	w.join(red, ann.ID, account.Owner)
	token := w.openSession(ann, red)
	if err := w.accounts.SetWishes(t.Context(), ann.ID, account.Wishes{DisplayName: new("Ann")}); err != nil {
		t.Fatal(err)
	}
	if s := w.session(token); s.DisplayName != "Ann" {
		t.Errorf("got %q", s.DisplayName)
	}
	for _, name := range []string{strings.Repeat("a", 101), "Ann\nBcc: eve@example.com", "\xff"} {
		refused(t, name, w.accounts.SetWishes(t.Context(), ann.ID, account.Wishes{DisplayName: &name}), fault.Invalid,
			"display_name must have at most 100 characters, and no control characters")
	}
}
