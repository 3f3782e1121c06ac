package slacklink_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has the links of two organizations with real accounts.
type world struct {
	*ledgertest.Service
	t        *testing.T
	accounts *account.Accounts
	links    *slacklink.Links
	ann      account.ID // who has an account with an address
}

// mails writes a record for each mail.
type mails struct{}

func (mails) SlackLinkMail(_ context.Context, _ id.Tenant, who account.Account, made slacklink.Link) ([]storage.Change, error) {
	return []storage.Change{{Kind: "test_mail", Key: made.LinkID, Value: []byte(string(who.ID) + " " + made.Team + "/" + made.ID + " " + made.Name)}}, nil
}

// mailed returns the mails of an organization, oldest first.
func (w *world) mailed(t id.Tenant) (texts []string) {
	w.t.Helper()
	all, err := w.Engine.Scan(w.t.Context(), t, "test_mail", "", "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range all {
		texts = append(texts, string(r.Value))
	}
	return texts
}

// people are accounts of which some exist only as names.
type people struct{ *account.Accounts }

func (p people) ByID(ctx context.Context, who account.ID) (account.Account, error) {
	found, err := p.Accounts.ByID(ctx, who)
	if fault.Is(err, fault.NotFound) {
		return account.Account{ID: who}, nil
	}
	return found, err
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
	w.links = slacklink.New(slacklink.Options{Records: w.Engine, Events: w.SystemEvents, Members: people{w.accounts}, Keyring: w.Keyring(), Mail: mails{},
		Clock: w.Clock, Pace: &quota.Quota{Records: w.Engine, Clock: w.Clock}})
}

func (w *world) join(t id.Tenant, who account.ID) {
	w.t.Helper()
	change, _, err := w.accounts.NewMembership(w.t.Context(), t, who, account.Approver)
	if err == nil {
		change.If = storage.AnyVersion
		err = w.Engine.Write(w.t.Context(), t, []storage.Change{change})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// change rewrites a membership; nil removes it.
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

// session returns the session of a member in which windows are opened.
func session(who account.ID) *account.Session {
	return &account.Session{ID: "ses_" + string(who), Account: who}
}

// offer opens windows for all and returns an offer.
func (w *world) offer(t id.Tenant, u slack.User) string {
	w.t.Helper()
	w.Pass(time.Second)
	for _, who := range []account.ID{"acc_ann", "acc_bob", w.ann} {
		if err := w.links.Open(w.t.Context(), t, session(who)); err != nil {
			w.t.Fatal(err)
		}
	}
	text, err := w.links.NewOffer(ledgertest.Organization(t), u, "Ann <@U1>")
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func (w *world) accept(t id.Tenant, who account.ID, offer string) error {
	return w.links.Accept(w.t.Context(), t, session(who), offer)
}

// expect checks whom a user of Slack is linked to; "" means nobody.
func (w *world) expect(what string, t id.Tenant, u slack.User, want account.ID) {
	w.t.Helper()
	m, err := w.links.Find(w.t.Context(), t, u)
	if m.Account != want || want == "" && !fault.Is(err, fault.NotFound) || want != "" && err != nil {
		w.t.Errorf("%s: got %q, %v, want %q", what, m.Account, err, want)
	}
}

var (
	ann1 = slack.User{Team: "T1", ID: "U1"}
	ann2 = slack.User{Team: "T2", ID: "U1"} // the same name in another workspace
)

func TestLinkFollowsItsMember(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		who, _, err := w.accounts.EnsureInvited(t.Context(), "ann@example.com", "correct horse battery",
			account.ClaimByInvitation(red, false), account.Visit{})
		if err != nil {
			t.Fatal(err)
		}
		ann := who.ID
		w.ann = ann
		w.join(red, ann)
		w.join(blue, ann)
		w.expect("at first", red, ann1, "")
		offer := w.offer(red, ann1)
		if o, err := w.links.ShowOffer(t.Context(), red, ledgertest.Organization(red), session(ann), offer); err != nil || o.User != ann1 || o.Name != "Ann <@U1>" {
			t.Errorf("offer: got %+v, %v", o, err)
		}
		if err := w.accept(red, ann, offer); err != nil {
			t.Fatal(err)
		}
		w.expect("linked", red, ann1, ann)
		w.expect("in another organization", blue, ann1, "")
		w.expect("in another workspace", red, ann2, "")
		w.open() // as after a restart
		w.expect("after a restart", red, ann1, ann)
		w.change(red, ann, func(m *account.Membership) { m.Suspended = true })
		w.expect("suspended", red, ann1, "")
		w.change(red, ann, func(m *account.Membership) { m.Suspended = false })
		w.expect("back", red, ann1, ann)
		w.change(red, ann, nil)
		w.expect("removed", red, ann1, "")
		w.join(red, ann)
		w.expect("a member again", red, ann1, "")
		if err := w.accept(red, ann, w.offer(red, ann1)); err != nil {
			t.Errorf("linked again: %v", err)
		}
		w.expect("linked again", red, ann1, ann)
		w.Pass(time.Second)
		if _, err := w.accounts.TakeOverByMail(t.Context(), "ann@example.com", account.Visit{}); err != nil {
			t.Fatal(err)
		}
		w.expect("taken over", red, ann1, "")
		if found, err := w.links.List(t.Context(), red, ann); err != nil || len(found) != 0 {
			t.Errorf("list: got %v, %v", found, err)
		}
		w.Pass(time.Second)
		if err := w.accept(red, ann, w.offer(red, ann1)); err != nil {
			t.Errorf("after the takeover: %v", err)
		}
		w.expect("after the takeover", red, ann1, ann)
	})
}

// An offer is valid for ten minutes, once, in its organization.
func TestOffers(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		w.join(red, "acc_ann")
		w.join(red, "acc_bob")
		w.join(blue, "acc_ann")
		refused := func(what string, err error) {
			t.Helper()
			if !fault.Is(err, fault.Invalid) || fault.Of(err).Code != "slack_offer_wrong" {
				t.Errorf("%s: got %v", what, err)
			}
		}
		closed := func(what string, err error) {
			t.Helper()
			if !fault.Is(err, fault.Conflict) || fault.Of(err).Code != slacklink.CodeClosed {
				t.Errorf("%s: got %v", what, err)
			}
		}
		offer := w.offer(red, ann1)
		refused("the other organization", w.accept(blue, "acc_ann", offer))
		for _, wrong := range []string{"", "A", "!", offer[:len(offer)-1], offer + "AAAA", strings.ToLower(offer)} {
			refused("wrong", w.accept(red, "acc_ann", wrong))
		}
		w.Pass(10*time.Minute - time.Millisecond)
		if err := w.accept(red, "acc_ann", offer); err != nil {
			t.Fatalf("just in time: %v", err)
		}
		closed("the same again", w.accept(red, "acc_ann", offer))
		w.offer(red, ann2) // opens windows again
		closed("the same in another window", w.accept(red, "acc_ann", offer))
		w.expect("linked", red, ann1, "acc_ann")
		if err := w.accept(red, "acc_bob", w.offer(red, ann1)); !fault.Is(err, fault.Conflict) || fault.Of(err).Code != "slack_user_linked" {
			t.Errorf("of another member: got %v", err)
		}
		late := w.offer(red, ann2)
		w.Pass(10 * time.Minute)
		closed("late", w.accept(red, "acc_ann", late))

		for what, err := range map[string]error{
			"another member's":   w.links.Remove(t.Context(), red, "acc_bob", "acc_bob", ann1),
			"in another":         w.links.Remove(t.Context(), blue, "acc_ann", "acc_ann", ann1),
			"of nobody":          w.links.Remove(t.Context(), red, "acc_ann", "", ann2),
			"another workspaces": w.links.Remove(t.Context(), red, "acc_ann", "acc_ann", ann2),
		} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: got %v", what, err)
			}
		}
		w.Pass(time.Second)
		if err := w.links.Remove(t.Context(), red, "acc_bob", "acc_ann", ann1); err != nil {
			t.Fatal(err)
		}
		w.expect("removed", red, ann1, "")
		if err := w.accept(red, "acc_bob", w.offer(red, ann1)); err != nil {
			t.Errorf("another member after the removal: %v", err)
		}
		var got []string
		for _, e := range w.Audit(t, red) {
			got = append(got, e.Kind+" by "+e.Principal)
			if !strings.Contains(string(e.Payload), `"slack_team_id":"T1","slack_user_id":"U1"`) || strings.Contains(string(e.Payload), "@U1") {
				t.Errorf("got %s", e.Payload)
			}
		}
		want := []string{"ledger_slack_linked by acc_ann", "ledger_slack_unlinked by acc_bob", "ledger_slack_linked by acc_bob"}
		if !slices.Equal(got, want) || len(w.Audit(t, blue)) != 0 {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// However many are accepted at once in a window, there is one link and one mail. A member has at most MaxLinks, and removed
// links leave no records behind.
func TestManyLinks(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t))
	w.join(red, "acc_ann")
	user := func(i int) slack.User { return slack.User{Team: "T1", ID: fmt.Sprint("U", i)} }
	var offers []string
	for i := range 10 {
		offers = append(offers, w.offer(red, user(i)))
	}
	if err := w.links.Open(t.Context(), red, session("acc_ann")); err != nil {
		t.Fatal(err)
	}
	for i := range offers {
		var err error
		if offers[i], err = w.links.NewOffer(ledgertest.Organization(red), user(i), "Ann <@U1>"); err != nil {
			t.Fatal(err)
		}
	}
	var made, refused atomic.Int64
	var group sync.WaitGroup
	for _, offer := range offers {
		group.Go(func() {
			switch err := w.accept(red, "acc_ann", offer); {
			case err == nil:
				made.Add(1)
			case fault.Of(err).Code == slacklink.CodeClosed:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 || refused.Load() != 9 || len(w.mailed(red)) != 1 {
		t.Errorf("got %d made, %d refused and %d mails", made.Load(), refused.Load(), len(w.mailed(red)))
	}
	for i := 1; i < slacklink.MaxLinks; i++ {
		if err := w.accept(red, "acc_ann", w.offer(red, user(10+i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.accept(red, "acc_ann", w.offer(red, user(20))); !fault.Is(err, fault.Conflict) || fault.Of(err).Code != "slack_link_limit" {
		t.Errorf("one more: got %v", err)
	}
	found, err := w.links.List(t.Context(), red, "acc_ann")
	if err != nil || len(found) != slacklink.MaxLinks || found[0].Name != "Ann <@U1>" {
		t.Fatalf("got %+v, %v", found, err)
	}
	for i := range 30 {
		if err := w.links.Remove(t.Context(), red, "acc_ann", "acc_ann", found[0].User); err != nil {
			t.Fatal(err)
		}
		w.Pass(10 * time.Minute)
		found[0].User = user(100 + i)
		if err := w.accept(red, "acc_ann", w.offer(red, found[0].User)); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := w.Engine.Scan(t.Context(), red, "slack_link", "", "", 100); err != nil || len(all) != slacklink.MaxLinks {
		t.Errorf("got %d records, %v", len(all), err)
	}
}

// An offer works only in a window that the member opened before it was made, in the same session and organization. So an offer
// that somebody sends to a member links nobody.
func TestWindows(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		ann, bob := session("acc_ann"), session("acc_bob")
		for _, tenant := range []id.Tenant{red, blue} {
			w.join(tenant, ann.Account)
			w.join(tenant, bob.Account)
		}
		make := func(t *testing.T, tenant id.Tenant) string {
			text, err := w.links.NewOffer(ledgertest.Organization(tenant), ann1, "Ann")
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		begin := func(t *testing.T, tenant id.Tenant, by *account.Session) {
			if err := w.links.Open(t.Context(), tenant, by); err != nil {
				t.Fatal(err)
			}
		}
		cases := map[string]func(*testing.T) string{
			"without a window":        func(t *testing.T) string { return make(t, red) },
			"another member's window": func(t *testing.T) string { begin(t, red, bob); return make(t, red) },
			"a window in another":     func(t *testing.T) string { begin(t, blue, ann); return make(t, red) },
			"the window of another session": func(t *testing.T) string {
				begin(t, red, &account.Session{ID: "ses_2", Account: ann.Account})
				return make(t, red)
			},
			"an offer from before the window": func(t *testing.T) string {
				offer := make(t, red)
				w.Pass(time.Second)
				begin(t, red, ann)
				return offer
			},
			"a window that has closed": func(t *testing.T) string { begin(t, red, ann); w.Pass(10 * time.Minute); return make(t, red) },
			"another window since": func(t *testing.T) string {
				begin(t, red, ann)
				offer := make(t, red)
				w.Pass(time.Second)
				begin(t, red, ann)
				return offer
			},
		}
		for name, prepare := range cases {
			t.Run(name, func(t *testing.T) {
				w.Pass(10 * time.Minute)
				offer := prepare(t)
				_, shown := w.links.ShowOffer(t.Context(), red, ledgertest.Organization(red), ann, offer)
				for what, err := range map[string]error{"show": shown, "accept": w.links.Accept(t.Context(), red, ann, offer)} {
					if !fault.Is(err, fault.Conflict) || fault.Of(err).Code != slacklink.CodeClosed {
						t.Errorf("%s: got %v", what, err)
					}
				}
			})
		}
		w.expect("refused", red, ann1, "")
		if got := w.mailed(red); len(got) != 0 {
			t.Errorf("got mails %q", got)
		}

		w.Pass(10 * time.Minute)
		if until, err := w.links.OpenUntil(t.Context(), red, ann); err != nil || until != 0 {
			t.Errorf("closed: got %d, %v", until, err)
		}
		begin(t, red, ann)
		if until, err := w.links.OpenUntil(t.Context(), red, ann); err != nil || until != id.InstantOf(w.Clock().Add(10*time.Minute)) {
			t.Errorf("open: got %d, %v", until, err)
		}
		for what, by := range map[string]*account.Session{"another session": {ID: "ses_2", Account: ann.Account}, "another member": bob} {
			if until, err := w.links.OpenUntil(t.Context(), red, by); err != nil || until != 0 {
				t.Errorf("%s: got %d, %v", what, until, err)
			}
		}
		if err := w.links.Accept(t.Context(), red, ann, make(t, red)); err != nil {
			t.Fatal(err)
		}
		if until, err := w.links.OpenUntil(t.Context(), red, ann); err != nil || until != 0 {
			t.Errorf("after the link: got %d, %v", until, err)
		}
		if got := w.mailed(red); !slices.Equal(got, []string{"acc_ann T1/U1 Ann"}) || len(w.mailed(blue)) != 0 {
			t.Errorf("got mails %q", got)
		}
	})
}

// The end of a membership removes its links with the names in them, and states it.
func TestEndedMembership(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		for _, tenant := range []id.Tenant{red, blue} {
			w.join(tenant, "acc_ann")
			w.join(tenant, "acc_bob")
			for who, u := range map[account.ID]slack.User{"acc_ann": ann1, "acc_bob": ann2} {
				if err := w.accept(tenant, who, w.offer(tenant, u)); err != nil {
					t.Fatal(err)
				}
			}
			w.offer(tenant, ann1) // opens windows
		}
		members := member.New(member.Options{Records: w.Engine, Events: w.SystemEvents, Accounts: w.accounts, Clock: w.Clock,
			Quota: &quota.Quota{Records: w.Engine, Clock: w.Clock}, SlackLinks: w.links})
		m, err := w.accounts.Membership(t.Context(), red, "acc_ann")
		if err != nil {
			t.Fatal(err)
		}
		if err := members.Remove(t.Context(), red, session("acc_ann"), m.ID); err != nil {
			t.Fatal(err)
		}
		count := func(tenant id.Tenant, kind storage.Kind, want int) {
			t.Helper()
			all, err := w.Engine.Scan(t.Context(), tenant, kind, "", "", 100)
			if err != nil || len(all) != want {
				t.Errorf("got %d %s of %d, %v, want %d", len(all), kind, tenant, err, want)
			}
		}
		count(red, "slack_link", 1)
		count(red, "slack_window", 2)
		count(blue, "slack_link", 2)
		count(blue, "slack_window", 3)
		w.expect("of the other member", red, ann2, "acc_bob")
		w.expect("in the other organization", blue, ann1, "acc_ann")
		events := w.Audit(t, red)
		last := events[len(events)-1]
		if last.Kind != "ledger_slack_unlinked" || last.Principal != "acc_ann" || !strings.Contains(string(last.Payload), `"account_id":"acc_ann"`) || len(events) != 4 {
			t.Errorf("got %d events, and last %s by %s: %s", len(events), last.Kind, last.Principal, last.Payload)
		}
	})
}
