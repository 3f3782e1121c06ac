package member_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// deputyWorld is an engine with two organizations that ann owns, the first with bob, and with others of various roles.
func deputyWorld(t *testing.T, engine storage.Engine) *world {
	w := signInWorld(t, engine, red)
	w.members = member.New(member.Options{Records: engine, Events: w.SystemEvents, Accounts: w.accounts, Clock: w.Clock,
		Quota: &quota.Quota{Records: engine, Clock: w.Clock}})
	for name, role := range map[string]account.Role{"mel": account.Member, "max": account.Auditor, "ada": account.Approver} {
		record, _, err := w.accounts.NewMembership(t.Context(), red, w.account(name), role)
		if err == nil {
			err = engine.Write(t.Context(), red, []storage.Change{record})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var records []storage.Change
	for name, role := range map[string]account.Role{"ann": account.Owner, "mel": account.Member} {
		record, _, err := w.accounts.NewMembership(t.Context(), blue, w.account(name), role)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	w.Found(t, blue, records...)
	return w
}

// name gives a member a deputy from a time on until another, both from now.
func (w *world) name(t id.Tenant, person, deputy string, from, until time.Duration) error {
	w.t.Helper()
	now := w.Clock()
	_, err := w.members.NameDeputy(w.t.Context(), t, w.session(person), member.NewDeputy{Membership: w.membership(t, deputy),
		From: id.InstantOf(now.Add(from)), Until: id.InstantOf(now.Add(until))})
	return err
}

// list returns the deputies of an organization, such as "mel for ada", with their state in brackets unless it is active.
func (w *world) list(t id.Tenant) (names []string) {
	w.t.Helper()
	found, err := w.members.Deputies(w.t.Context(), t)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range found {
		text := fmt.Sprintf("%s for %s", w.nameOf(found[i].Deputy), w.nameOf(found[i].Person))
		if state := found[i].State; state != member.DeputyActive {
			text += fmt.Sprintf(" (%s)", state)
		}
		names = append(names, text)
	}
	slices.Sort(names)
	return names
}

func (w *world) nameOf(who account.ID) string {
	w.t.Helper()
	found, err := w.accounts.ByID(w.t.Context(), who)
	if err != nil {
		w.t.Fatal(err)
	}
	name, _, _ := strings.Cut(found.Email, "@")
	return name
}

// deputyEvents returns the statements about deputies.
func (w *world) deputyEvents(t id.Tenant) (found []string) {
	w.t.Helper()
	for _, s := range w.Audit(w.t, t) {
		if strings.HasPrefix(s.Kind, "ledger_deputy_") {
			found = append(found, s.Kind+" by "+w.nameOf(account.ID(s.Principal)))
		}
	}
	return found
}

const day = 24 * time.Hour

// Deputies are named, replaced and ended, by whom it is allowed, each with a statement. Their periods begin and end by the clock.
func TestDeputies(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := deputyWorld(t, open(t))
		want := func(when string, names ...string) {
			t.Helper()
			if got := w.list(red); !slices.Equal(got, names) {
				t.Errorf("%s: got %v, want %v", when, got, names)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(w.name(red, "ada", "mel", 0, day))
		must(w.name(red, "bob", "max", day, 2*day))
		must(w.name(blue, "ann", "mel", 0, day)) // other organizations do not matter
		want("named", "max for bob (later)", "mel for ada")
		w.Pass(day - time.Millisecond)
		want("before the end", "max for bob (later)", "mel for ada")
		w.Pass(time.Millisecond)
		want("at the end", "max for bob")
		if who, err := w.members.Represents(t.Context(), red, w.account("max")); err != nil || who != w.account("bob") {
			t.Errorf("got %s, %v", who, err)
		}
		must(w.name(red, "bob", "mel", 0, 90*day))
		want("replaced", "mel for bob")

		end := func(by, person string) error {
			return w.members.EndDeputy(t.Context(), red, w.session(by), w.membership(red, person))
		}
		refused(t, "another member", end("max", "bob"), fault.Forbidden, "", "Your role does not allow this")
		refused(t, "no deputy", end("ann", "ada"), fault.NotFound, "", "Not found")
		refused(t, "unknown", w.members.EndDeputy(t.Context(), red, w.session("ann"), "mem_x"), fault.NotFound, "", "Not found")
		refused(t, "blue's", w.members.EndDeputy(t.Context(), red, w.session("ann"), w.membership(blue, "ann")), fault.NotFound, "", "Not found")
		must(end("mel", "bob"))
		want("the deputy ended it")
		must(w.name(red, "ada", "mel", 0, day))
		must(end("ada", "ada"))
		must(w.name(red, "ada", "mel", 0, day))
		must(end("ann", "ada"))
		want("an owner ended it")
		if got := w.list(blue); len(got) != 0 {
			t.Errorf("blue: got %v after its time", got)
		}
		wanted := []string{"ledger_deputy_named by ada", "ledger_deputy_named by bob", "ledger_deputy_named by bob", "ledger_deputy_ended by mel",
			"ledger_deputy_named by ada", "ledger_deputy_ended by ada", "ledger_deputy_named by ada", "ledger_deputy_ended by ann"}
		if got := w.deputyEvents(red); !slices.Equal(got, wanted) {
			t.Errorf("got %q", got)
		}
		if got := w.deputyEvents(blue); len(got) != 1 {
			t.Errorf("blue: got %q", got)
		}
	})
}

// Who cannot be a deputy, and for which time.
func TestDeputyIsRefused(t *testing.T) {
	w := deputyWorld(t, enginetest.Pebble(t))
	if err := w.name(red, "ada", "mel", day, 3*day); err != nil {
		t.Fatal(err)
	}
	const noMember = "The deputy must be a member of the organization who is not suspended"
	const votes = "The role of this member votes: a deputy is a member whose own role does not vote"
	for name, c := range map[string]struct {
		person, deputy string
		from, until    time.Duration
		kind           fault.Kind
		code, message  string
	}{
		"no voter":      {"mel", "max", 0, day, fault.Forbidden, "", "Your role does not allow this"},
		"oneself":       {"ada", "ada", 0, day, fault.Invalid, "", "You cannot be your own deputy"},
		"empty":         {"bob", "max", day, day, fault.Invalid, "", "until must be in the future and after from"},
		"over":          {"bob", "max", -2 * day, -day, fault.Invalid, "", "until must be in the future and after from"},
		"long":          {"bob", "max", day, 91*day + time.Millisecond, fault.Invalid, "", "until must be at most 90 days after from"},
		"far":           {"bob", "max", 366*day + time.Millisecond, 367 * day, fault.Invalid, "", "from must be within 366 days"},
		"taken":         {"bob", "mel", 0, day + time.Millisecond, fault.Conflict, "deputy_taken", "This member is the deputy of another member at that time"},
		"taken, inside": {"bob", "mel", 2 * day, 2*day + time.Second, fault.Conflict, "deputy_taken", "This member is the deputy of another member at that time"},
		"before":        {"bob", "mel", 0, day, 0, "", ""},
		"after":         {"ann", "mel", 3 * day, 4 * day, 0, "", ""},
		"longest":       {"bob", "max", 0, 90 * day, 0, "", ""},
		"an owner":      {"bob", "ann", 0, day, fault.Conflict, "deputy_role", votes},
		"an approver":   {"bob", "ada", 0, day, fault.Conflict, "deputy_role", votes},
	} {
		err := w.name(red, c.person, c.deputy, c.from, c.until)
		if c.message != "" {
			refused(t, name, err, c.kind, c.code, c.message)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.members.NameDeputy(t.Context(), red, w.session("bob"), member.NewDeputy{Membership: "mem_x", Until: id.InstantOf(w.Clock().Add(day))})
	refused(t, "unknown", err, fault.Invalid, "", noMember)
	_, err = w.members.NameDeputy(t.Context(), red, &account.Session{Account: w.account("bob"), StepUpDue: true},
		member.NewDeputy{Membership: w.membership(red, "max"), Until: id.InstantOf(w.Clock().Add(day))})
	refused(t, "without a factor", err, fault.Unauthorized, "step_up", "Confirm your identity again: step up")
}

// A deputy ends with the membership of either and with the right to vote, and rests while one is suspended.
func TestDeputyEndsWithTheMembership(t *testing.T) {
	yes, no, auditor, approver := true, false, account.Auditor, account.Approver
	for name, c := range map[string]struct {
		do   func(w *world) error
		want []string
		ends bool
	}{
		"person removed": {func(w *world) error {
			return w.members.Remove(t.Context(), red, w.session("ann"), w.membership(red, "ada"))
		}, nil, true},
		"deputy removed": {func(w *world) error {
			return w.members.Remove(t.Context(), red, w.session("ann"), w.membership(red, "mel"))
		}, nil, true},
		"no voter and voter again": {func(w *world) error {
			if _, err := w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "ada"), member.Change{Role: &auditor}); err != nil {
				return err
			}
			_, err := w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "ada"), member.Change{Role: &approver})
			return err
		}, nil, true},
		"deputy has another role": {func(w *world) error {
			_, err := w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "mel"), member.Change{Role: &auditor})
			return err
		}, []string{"mel for ada"}, false},
		"deputy suspended": {func(w *world) error {
			_, err := w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "mel"), member.Change{Suspended: &yes})
			return err
		}, []string{"mel for ada (suspended)"}, false},
		"deputy votes": {func(w *world) error {
			_, err := w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "mel"), member.Change{Role: &approver})
			return err
		}, []string{"mel for ada (role)"}, false},
		"deputy votes and no longer": {func(w *world) error {
			_, err := w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "mel"), member.Change{Role: &approver})
			if who, err := w.members.Represents(t.Context(), red, w.account("mel")); who != "" || err != nil {
				t.Errorf("while the deputy's own role votes: got %s, %v", who, err)
			}
			if err == nil {
				_, err = w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "mel"), member.Change{Role: &auditor})
			}
			return err
		}, []string{"mel for ada"}, false},
		"suspended and back": {func(w *world) error {
			name := w.membership(red, "ada")
			if _, err := w.members.Change(t.Context(), red, w.session("ann"), name, member.Change{Suspended: &yes}); err != nil {
				return err
			}
			if got := w.list(red); !slices.Equal(got, []string{"mel for ada (suspended)"}) {
				t.Errorf("suspended: got %v", got)
			}
			_, err := w.members.Change(t.Context(), red, w.session("ann"), name, member.Change{Suspended: &no})
			return err
		}, []string{"mel for ada"}, false},
	} {
		w := deputyWorld(t, enginetest.Pebble(t))
		if err := w.name(red, "ada", "mel", 0, day); err != nil {
			t.Fatal(err)
		}
		if err := c.do(w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := w.list(red); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if got := w.deputyEvents(red); slices.Contains(got, "ledger_deputy_ended by ann") != c.ends {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// A deputyship that a previous holder of an account made has no effect, until the present holder names a deputy. That the
// deputy's account is taken over changes nothing: the represented member chose the member of that name.
func TestDeputyAfterATakeover(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := deputyWorld(t, open(t))
		of := make(map[string]account.Membership)
		for name, role := range map[string]account.Role{"eve": account.Approver, "liz": account.Member} {
			who, _, err := w.accounts.EnsureInvited(t.Context(), name+"@example.com", "", account.ClaimByInvitation(red, false), account.Visit{})
			if err != nil {
				t.Fatal(err)
			}
			record, made, err := w.accounts.NewMembership(t.Context(), red, who.ID, role)
			if err == nil {
				err = w.Engine.Write(t.Context(), red, []storage.Change{record})
			}
			if err != nil {
				t.Fatal(err)
			}
			of[name] = made
		}
		eve, liz := of["eve"].Account, of["liz"]
		check := func(when string, want account.ID, list string) {
			t.Helper()
			who, err := w.members.Represents(t.Context(), red, liz.Account)
			if got := w.list(red); err != nil || who != want || !slices.Equal(got, []string{list}) {
				t.Errorf("%s: got %s, %v and %v", when, who, err, got)
			}
		}
		name := func() {
			t.Helper()
			_, err := w.members.NameDeputy(t.Context(), red, &account.Session{Account: eve},
				member.NewDeputy{Membership: liz.ID, Until: id.InstantOf(w.Clock().Add(day))})
			if err != nil {
				t.Fatal(err)
			}
			w.Pass(time.Minute)
		}
		take := func(email string) {
			t.Helper()
			if _, err := w.accounts.TakeOverByMail(t.Context(), email, account.Visit{}); err != nil {
				t.Fatal(err)
			}
			w.Pass(time.Minute)
		}
		name()
		take("liz@example.com")
		check("the deputy's account is taken over", eve, "liz for eve")
		take("eve@example.com")
		check("taken over", "", "liz for eve (taken_over)")
		name()
		check("named again", eve, "liz for eve")
	})
}

// Members see that the sign-in of a deputy was changed, while the deputy votes.
func TestSignInOfADeputy(t *testing.T) {
	w := deputyWorld(t, enginetest.Pebble(t))
	if err := w.name(red, "ada", "mel", 0, day); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
	for _, name := range []string{"mel", "max"} {
		if err := w.accounts.SetPassword(t.Context(), name+"@example.com", "the operator's choice"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.members.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mel@example.com", ""} {
		listed, err := w.members.SignInsChanged(t.Context(), red, 7*day)
		got := ""
		for _, one := range listed {
			got += one.Email
		}
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		w.Pass(day)
	}
}
