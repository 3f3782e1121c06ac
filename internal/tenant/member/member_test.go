package member_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has two organizations, owned by ann and bob.
type world struct {
	*ledgertest.Service
	t        testing.TB
	accounts *account.Accounts
	members  *member.Members
}

func newWorld(t testing.TB, change ...func(*member.Options)) *world {
	t.Helper()
	w := &world{Service: ledgertest.New(t), t: t}
	w.accounts = account.New(account.Options{Records: w.Store, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	o := member.Options{Records: w.Store, Events: w.SystemEvents, Accounts: w.accounts, Clock: w.Clock,
		Quota: &quota.Quota{Records: w.Store, Clock: w.Clock}}
	for _, f := range change {
		f(&o)
	}
	w.members = member.New(o)
	for _, tenant := range []id.Tenant{red, blue} {
		var records []storage.Change
		for _, name := range []string{"ann", "bob"} {
			record, _, err := w.accounts.NewMembership(t.Context(), tenant, w.account(name), account.Owner)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		w.Found(t, tenant, records...)
	}
	return w
}

func (w *world) account(name string) account.ID {
	w.t.Helper()
	who, _, err := w.accounts.Ensure(w.t.Context(), name+"@example.com", "")
	if err != nil {
		w.t.Fatal(err)
	}
	return who.ID
}

func (w *world) session(name string) *account.Session {
	return &account.Session{Account: w.account(name)}
}

func (w *world) membership(t id.Tenant, name string) string {
	w.t.Helper()
	m, err := w.accounts.Membership(w.t.Context(), t, w.account(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return m.ID
}

// owners counts the effective owners of an organization.
func (w *world) owners(t id.Tenant) (n int) {
	w.t.Helper()
	all, err := w.accounts.Members(w.t.Context(), t)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range all {
		if m.Role == account.Owner && m.IsEffective() {
			n++
		}
	}
	return n
}

func refused(t testing.TB, name string, err error, kind fault.Kind, code, message string) {
	t.Helper()
	if f := fault.Of(err); err == nil || f.Kind != kind || f.Code != code || f.Message != message {
		t.Errorf("%s: got %v, want kind %d %q %q", name, err, kind, code, message)
	}
}

// apart returns the members as another process would see them: without the locks by which changes wait for each other.
func (w *world) apart() *member.Members {
	events := &sysevent.Appender{Ledgers: w.Ledgers, Records: w.Store, Keyring: w.Keyring(),
		Disclosure: w.SystemEvents.Disclosure, Clock: w.Clock}
	return member.New(member.Options{Records: w.Store, Events: events, Accounts: w.accounts, Clock: w.Clock,
		Quota: &quota.Quota{Records: w.Store, Clock: w.Clock}})
}

// Of two concurrent changes that together would leave no owner, one is refused. The locks are only for speed: this
// holds without them.
func TestLastTwoOwnersAtOnce(t *testing.T) {
	admin, suspended := account.Admin, true
	end := map[string]func(m *member.Members, w *world, by *account.Session, membership string) error{
		"demoted": func(m *member.Members, w *world, by *account.Session, membership string) error {
			_, err := m.Change(w.t.Context(), red, by, membership, member.Change{Role: &admin})
			return err
		},
		"suspended": func(m *member.Members, w *world, by *account.Session, membership string) error {
			_, err := m.Change(w.t.Context(), red, by, membership, member.Change{Suspended: &suspended})
			return err
		},
		"removed": func(m *member.Members, w *world, by *account.Session, membership string) error {
			return m.Remove(w.t.Context(), red, by, membership)
		},
	}
	for name, change := range end {
		for _, self := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, own %v", name, self), func(t *testing.T) {
				w := newWorld(t)
				names := []string{"ann", "bob"}
				errs := make([]error, 2)
				begin := make(chan struct{})
				var all sync.WaitGroup
				for i, by := range names {
					target := names[1-i]
					if self {
						target = by
					}
					who, membership := w.session(by), w.membership(red, target)
					members := w.apart()
					all.Go(func() { <-begin; errs[i] = change(members, w, who, membership) })
				}
				close(begin)
				all.Wait()
				if (errs[0] == nil) == (errs[1] == nil) || w.owners(red) != 1 {
					t.Errorf("got %v and %d owners", errs, w.owners(red))
				}
				if w.owners(blue) != 2 {
					t.Errorf("blue has %d owners", w.owners(blue))
				}
			})
		}
	}
}

// A person who lost the right between the check of the request and the change changes nothing.
func TestRightIsReadWithTheChange(t *testing.T) {
	w := newWorld(t)
	member1, suspended := account.Member, true
	if _, err := w.members.Change(t.Context(), red, w.session("ann"), w.membership(red, "bob"), member.Change{Role: &member1}); err != nil {
		t.Fatal(err)
	}
	const message = "Your role does not allow this"
	_, err := w.members.Change(t.Context(), red, w.session("bob"), w.membership(red, "ann"), member.Change{Suspended: &suspended})
	refused(t, "change", err, fault.Forbidden, "", message)
	_, err = w.members.Invite(t.Context(), red, w.session("bob"), "x@example.com", account.Member)
	refused(t, "invite", err, fault.Forbidden, "", message)
	_, err = w.members.Invite(t.Context(), red, w.session("stranger"), "x@example.com", account.Member)
	refused(t, "stranger", err, fault.Forbidden, "", message)
	refused(t, "remove", w.members.Remove(t.Context(), red, w.session("bob"), w.membership(red, "ann")), fault.Forbidden, "", message)
}

// An organization has a limit on members and open invitations together. Expired invitations do not count, nor do
// those of another organization.
func TestBoundOfMembers(t *testing.T) {
	w := newWorld(t)
	ann := w.session("ann")
	now := id.InstantOf(w.Clock())
	var records []storage.Change
	for i := range 997 {
		value, err := json.Marshal(map[string]any{"email": fmt.Sprintf("p%d@example.com", i), "role": "member",
			"hash": id.Hash{}, "created_at": now, "created_by": ann.Account, "expires_at": now + 1000})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, storage.Change{Kind: "invitation", Key: fmt.Sprintf("inv_%032x", i), Value: value})
	}
	for _, tenant := range []id.Tenant{red, blue} {
		if err := w.Store.Write(t.Context(), tenant, records); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.members.Invite(t.Context(), red, ann, "last@example.com", account.Member); err != nil {
		t.Fatal(err)
	}
	_, err := w.members.Invite(t.Context(), red, ann, "more@example.com", account.Member)
	refused(t, "one more", err, fault.Conflict, "member_limit", "The organization has 1000 members and open invitations, which is the limit")
	if _, err := w.members.Invite(t.Context(), blue, ann, "more@example.com", account.Member); err != nil {
		t.Errorf("blue: %v", err)
	}
	w.Pass(time.Second)
	if _, err := w.members.Invite(t.Context(), red, ann, "more@example.com", account.Member); err != nil {
		t.Errorf("after others were over: %v", err)
	}
	left, err := w.Store.Scan(t.Context(), red, "invitation", "", "", 2000)
	if err != nil || len(left) != 997+2-100 {
		t.Errorf("got %d records, %v", len(left), err)
	}
	open, err := w.members.ListInvitations(t.Context(), red, "", 10)
	if err != nil || len(open) != 2 || open[0].Email != "last@example.com" {
		t.Errorf("got %v, %v", open, err)
	}
}

// Nobody else sees an invitation that is mailed.
func TestMailedInvitation(t *testing.T) {
	post := &post{}
	w := newWorld(t, func(o *member.Options) { o.Mail = post })
	sent, err := w.members.Invite(t.Context(), red, w.session("ann"), "x@example.com", account.Auditor)
	if err != nil || !sent.Mailed || sent.Token != "" {
		t.Fatalf("got %+v, %v", sent, err)
	}
	again, err := w.members.Resend(t.Context(), red, w.session("bob"), sent.ID)
	if err != nil || !again.Mailed || len(post.tokens) != 2 || post.tokens[0] == post.tokens[1] {
		t.Fatalf("got %+v, %v, %v", again, post.tokens, err)
	}
	letters, err := w.Store.Scan(t.Context(), red, "letter", "", "", 9)
	if err != nil || len(letters) != 2 {
		t.Errorf("got %v, %v", letters, err)
	}
	find := func(text string) error {
		token, err := member.ParseToken(text)
		if err != nil {
			return err
		}
		_, _, err = w.members.FindInvitation(t.Context(), red, token)
		return err
	}
	if err := find(post.tokens[1]); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{"older": post.tokens[0], "long": post.tokens[1] + "AAAA", "none": ""} {
		refused(t, name, find(text), fault.NotFound, "", "The invitation is unknown, used, revoked or expired")
	}
	stored, err := w.Store.Get(t.Context(), red, "invitation", sent.ID)
	if err != nil || slices.Contains(post.tokens, string(stored.Value)) {
		t.Errorf("got %s, %v", stored.Value, err)
	}
}

// post writes a record for each mail.
type post struct{ tokens []string }

func (p *post) InvitationMail(_ context.Context, i member.Invitation, token, _ string) ([]storage.Change, error) {
	p.tokens = append(p.tokens, token)
	return []storage.Change{{Kind: "letter", Key: fmt.Sprint(len(p.tokens)), Value: []byte("{}")}}, nil
}

func (p *post) DeputyMail(context.Context, id.Tenant, member.Deputyship) ([]storage.Change, error) {
	return nil, nil
}
