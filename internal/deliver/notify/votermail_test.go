package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// silent calls no receiver.
type silent struct{}

func (silent) CheckURL(string) error { return nil }

func (silent) Post(context.Context, string, http.Header, []byte) (egress.Answer, error) {
	return egress.Answer{Status: 204}, nil
}

// settings has the settings of both organizations. The account maker created the key ik_owner.
// Mails of red contain columns if inMail.
type settings struct {
	maker  *account.ID
	inMail *bool
}

func (s settings) CurrentSettings(_ context.Context, t id.Tenant) (*org.Settings, error) {
	return &org.Settings{Active: true, ColumnsInMail: *s.inMail && t == red, Columns: []org.Column{{Path: "amount_usd"}, {Path: "order_id"}, {Path: "site"}}}, nil
}

func (settings) Settings(context.Context, *log.State) (*org.Settings, error) {
	return &org.Settings{Active: true}, nil
}

func (s settings) IngestKey(_ context.Context, _ id.Tenant, key string) (org.IngestKey, error) {
	if key == "ik_owner" {
		return org.IngestKey{ID: key, CreatedBy: string(*s.maker)}, nil
	}
	return org.IngestKey{ID: key, CreatedBy: sysevent.Operator}, nil
}

func (settings) Summary(_ context.Context, t id.Tenant) (org.Summary, error) {
	return org.Summary{ID: ledgertest.Organization(t), Name: "Number", Slug: id.Slug(fmt.Sprintf("number-%d", t))}, nil
}

// voterWorld has two organizations with members of all roles, in which refunds need approval.
type voterWorld struct {
	*ledgertest.Service
	t         testing.TB
	accounts  *account.Accounts
	members   *member.Members
	readings  int // of deputies
	agents    *agent.Agents
	policies  *policystore.Policies
	approvals *approval.Approvals
	outbox    *mail.Outbox
	mailer    *notify.Voters
	sent      *postbox
	asker     account.ID // the owner of red
	inMail    bool       // mails of red contain columns
	bots      map[id.Tenant]id.Agent
}

func newVoterWorld(t testing.TB, engine storage.Engine) *voterWorld {
	t.Helper()
	w := &voterWorld{Service: ledgertest.On(t, engine), t: t, sent: &postbox{}, bots: map[id.Tenant]id.Agent{}}
	w.open()
	for _, tenant := range []id.Tenant{red, blue} {
		made, credentials, err := w.agents.NewAgent(t.Context(), tenant, sysevent.Operator, agent.Wanted{DisplayName: "Refund bot"})
		if err != nil {
			t.Fatal(err)
		}
		w.bots[tenant] = credentials.Agent
		for _, role := range []account.Role{account.Owner, account.Admin, account.PolicyEditor, account.Approver, account.Auditor, account.Member} {
			who, _, err := w.accounts.Ensure(t.Context(), address(role, tenant), "")
			if err != nil {
				t.Fatal(err)
			}
			if tenant == red && role == account.Owner {
				w.asker = who.ID
			}
			record, _, err := w.accounts.NewMembership(t.Context(), tenant, who.ID, role)
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, record)
		}
		w.Found(t, tenant, made...)
		document := []byte(`{"policy_id":"refunds","name":"Refunds","rules":[{"rule_id":"refund","tool":"acme.refund","decision":"allow_with_obligation","reason":"money leaves",
			"obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":86400}]}]}`)
		if _, err := w.policies.Create(t.Context(), tenant, "acc_rules", document); err != nil {
			t.Fatal(err)
		}
		if _, err := w.policies.Activate(t.Context(), tenant, "acc_rules", "refunds"); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func address(r account.Role, t id.Tenant) string { return fmt.Sprintf("%s-%d@example.com", r, t) }

type countingDeputies struct {
	*member.Members
	readings *int
}

// Represented implements approval.Deputies.
func (c countingDeputies) Represented(ctx context.Context, t id.Tenant) (map[account.ID]account.ID, error) {
	*c.readings++
	return c.Members.Represented(ctx, t)
}

// open starts a new process on the stored state.
func (w *voterWorld) open() {
	engine := w.Engine
	w.accounts = account.New(account.Options{Records: engine, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	w.agents = agent.New(agent.Options{Records: engine, Events: w.SystemEvents, Clock: w.Clock})
	w.policies = policystore.New(policystore.Options{Records: engine, Events: w.SystemEvents, Clock: w.Clock})
	hooks := webhook.New(webhook.Options{Records: engine, Keyring: w.Keyring(), Caller: silent{}, Clock: w.Clock})
	w.outbox = mail.New(mail.Options{Records: engine, Keyring: w.Keyring(), Transport: w.sent, Clock: w.Clock})
	known := settings{&w.asker, &w.inMail}
	w.members = member.New(member.Options{Records: engine, Events: w.SystemEvents, Accounts: w.accounts, Clock: w.Clock,
		Quota: &quota.Quota{Records: engine, Clock: w.Clock},
		Mail:  notify.OrganizationMail{Outbox: w.outbox, Organizations: known, Accounts: w.accounts, PublicURL: "https://log.example/"}})
	w.approvals = approval.New(approval.Options{Records: engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.policies, Agents: w.agents,
		Organizations: known, Members: w.accounts, Deputies: countingDeputies{w.members, &w.readings}, Keyring: w.Keyring(), Clock: w.Clock,
		Webhooks: &notify.Counter{Deliveries: hooks, Records: engine, Clock: w.Clock, Enabled: w.outbox.Enabled()}})
	w.mailer = notify.NewVoters(notify.VotersOptions{Records: engine, Approvals: w.approvals, Accounts: w.accounts, Organizations: known, Outbox: w.outbox,
		PublicURL: "https://log.example/", Clock: w.Clock})
}

// ask requests the n-th approval of an organization.
func (w *voterWorld) ask(tenant id.Tenant, n int, key string) (approval.Approval, error) {
	a, _, err := w.approvals.Ask(w.t.Context(), tenant, approval.Question{Agent: w.bots[tenant], Tool: "acme.refund",
		Payload: fmt.Appendf(nil, `{"amount":%d,"note":"a secret"}`, n), Trace: id.Trace(fmt.Sprint("trc_", n)), IngestKeyID: key})
	return a, err
}

func (w *voterWorld) mustAsk(tenant id.Tenant, n int, key string) approval.Approval {
	w.t.Helper()
	a, err := w.ask(tenant, n, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// sweep writes and sends the due mails, and returns them by address.
func (w *voterWorld) sweep() map[string][]mail.Message {
	w.t.Helper()
	logger := slog.New(slog.NewTextHandler(w.t.Output(), nil))
	if err := w.mailer.Sweep(w.t.Context(), logger); err != nil {
		w.t.Logf("sweep: %v", err)
	}
	over, stop := context.WithCancel(w.t.Context())
	stop()
	for before := -1; before < len(w.sent.messages); {
		before = len(w.sent.messages)
		if err := w.outbox.Sweep(w.t.Context(), logger); err != nil {
			w.t.Logf("sweep of mails: %v", err)
		}
		w.outbox.Run(over, logger) // returns when no message is in flight
	}
	got := map[string][]mail.Message{}
	for _, m := range w.sent.messages {
		got[m.To] = append(got[m.To], m)
	}
	w.sent.messages = nil
	return got
}

// wantMailed checks that exactly these addresses got one mail each.
func wantMailed(t testing.TB, name string, got map[string][]mail.Message, want ...string) {
	t.Helper()
	var to []string
	for address, all := range got {
		for range all {
			to = append(to, address)
		}
	}
	slices.Sort(to)
	slices.Sort(want)
	if !slices.Equal(to, want) {
		t.Errorf("%s: got mails to %v, want %v", name, to, want)
	}
}

// member changes the membership of a role.
func (w *voterWorld) member(tenant id.Tenant, role account.Role, change func(*account.StoredMembership)) {
	w.t.Helper()
	all, err := w.accounts.Members(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(m account.StoredMembership) bool { return m.Role == role })
	change(&all[at])
	record, err := all[at].Put()
	if err == nil {
		err = w.Engine.Write(w.t.Context(), tenant, []storage.Change{record})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Exactly the users who may vote on a question are notified.
func TestVotersAreTold(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newVoterWorld(t, open(t))
		a := w.mustAsk(red, 1, "ik_operator")
		wantMailed(t, "at once", w.sweep())
		w.Pass(3 * time.Second)
		got := w.sweep()
		wantMailed(t, "first", got, address(account.Owner, red), address(account.Admin, red), address(account.Approver, red))
		want := fmt.Sprintf("Refund bot asks to run acme.refund\nYou are asked because: money leaves\nWithin 24 hours, until %s UTC\n"+
			"https://log.example/console/approvals/%s\n\nNumber, by agentledger. A vote needs your sign-in: this mail alone decides nothing.\n"+
			"Fewer mails: https://log.example/account#mail\n", a.ExpiresAt.Time().UTC().Format("2 Jan 15:04"), a.ID)
		for address, mails := range got {
			m := mails[0]
			if m.Text != want || m.Subject != "Refund bot waits for you: acme.refund" || m.From != "Number approvals" || m.Unsubscribe != "https://log.example/account#mail" {
				t.Errorf("%s: got %+v, want %q", address, m, want)
			}
			for _, part := range []string{"<b>acme.refund</b>", "money leaves", `href="https://log.example/console/approvals/` + string(a.ID) + `"`, `href="https://log.example/account#mail"`} {
				if !strings.Contains(m.HTML, part) {
					t.Errorf("%s: %q is not in %s", address, part, m.HTML)
				}
			}
			if strings.Contains(m.HTML+m.Text+m.Subject, "a secret") || strings.Contains(m.HTML, "<form") || strings.Contains(m.HTML, "<script") {
				t.Errorf("%s: got %s", address, m.HTML)
			}
		}
		w.Pass(time.Hour)
		wantMailed(t, "notified before", w.sweep())

		w.member(red, account.Approver, func(m *account.StoredMembership) { m.Suspended = true })
		w.mustAsk(red, 2, "ik_owner") // which the owner created
		w.Pass(3 * time.Second)
		got = w.sweep()
		wantMailed(t, "asked by the owner's key", got, address(account.Admin, red)) // the owner may not vote on it
		if text := got[address(account.Admin, red)][0].Text; strings.Contains(text, string(a.ID)) || !strings.Contains(text, "1 more waits: https://log.example/console/approvals\n") {
			t.Errorf("got %q", text)
		}

		w.Pass(time.Hour)
		off := false
		if err := w.accounts.SetWishes(t.Context(), w.asker, account.Wishes{ApprovalMail: &off}); err != nil {
			t.Fatal(err)
		}
		w.member(red, account.Admin, func(m *account.StoredMembership) { m.Role = account.Auditor })
		w.member(red, account.Member, func(m *account.StoredMembership) { m.Role = account.Approver })
		w.mustAsk(red, 3, "ik_operator")
		w.Pass(3 * time.Second)
		wantMailed(t, "turned off, role lost, role got", w.sweep(), address(account.Member, red))
		w.Pass(time.Hour)
		wantMailed(t, "later", w.sweep())
	})
}

// If the organization allows it, mails have the values of its columns, and an erasure deletes the unsent ones. Texts that
// could be links are not shown, and another organization's mails have no values.
func TestColumnsInMail(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newVoterWorld(t, open(t))
		w.inMail = true
		stated := map[id.Tenant]*event.OnBehalfOf{red: {Issuer: "https://login.example", Subject: "u1"}, blue: {Issuer: "https://login.example", Subject: "somebody"}}
		var asked approval.Approval
		for _, tenant := range []id.Tenant{red, blue} {
			var err error
			asked, _, err = w.approvals.Ask(t.Context(), tenant, approval.Question{Agent: w.bots[tenant], Tool: "acme.refund", IngestKeyID: "ik_operator", OnBehalfOf: stated[tenant],
				Payload: []byte(`{"amount_usd":640,"note":"a secret","order_id":"A-1009","site":"evil.example/x"}`)})
			if err != nil {
				t.Fatal(err)
			}
		}
		w.Pass(3 * time.Second)
		got := w.sweep()
		m := got[address(account.Admin, red)][0]
		if m.Subject != "Approve 640.00 USD? Refund bot: acme.refund, order A-1009, site (on the page)" ||
			!strings.HasPrefix(m.Text, "Refund bot asks to run acme.refund\n640.00 USD, order A-1009, site (on the page)\nOn behalf of u1 (claimed)\nYou are asked because: money leaves\n") ||
			!strings.Contains(m.HTML, "<bdi>On behalf of u1 (claimed)</bdi>") || !strings.Contains(m.HTML, ">640.00 USD</h1>") || !strings.Contains(m.HTML, "order A-1009") {
			t.Errorf("got %q, %q, %s", m.Subject, m.Text, m.HTML)
		}
		if all := m.Subject + m.Text + m.HTML; strings.Contains(all, "a secret") || strings.Contains(all, "evil") {
			t.Errorf("got %s", all)
		}
		if m := got[address(account.Admin, blue)][0]; m.Subject != "Refund bot waits for you: acme.refund" || strings.Contains(m.Text+m.HTML, "A-1009") ||
			!strings.Contains(m.Text, "\nOn behalf of (on the page) (claimed)\n") || strings.Contains(m.Text+m.HTML, "somebody") {
			t.Errorf("blue: got %q, %q", m.Subject, m.Text)
		}
		w.Pass(10 * time.Minute)
		w.mustAsk(red, 2, "ik_operator")
		w.Pass(3 * time.Second)
		if err := w.mailer.Sweep(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		gone := func(_ context.Context, tenant id.Tenant, name string) (bool, error) {
			return name != string(asked.ID), nil
		}
		for tenant, want := range map[id.Tenant]int{red: 3, blue: 0} {
			if deleted, err := w.outbox.EraseTexts(t.Context(), tenant, gone); err != nil || deleted != want {
				t.Errorf("%d: deleted %d, %v, want %d", tenant, deleted, err, want)
			}
		}
		wantMailed(t, "after the erasure", w.sweep())
	})
}

// A mail that cannot be written, here because an older program stored a malformed address, stops no other mail.
func TestOneBadMail(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newVoterWorld(t, open(t))
		stored, err := w.Engine.Get(t.Context(), id.Service, "account", string(w.asker))
		if err != nil {
			t.Fatal(err)
		}
		value := strings.Replace(string(stored.Value), address(account.Owner, red), "no address", 1)
		change := storage.Change{Kind: "account", Key: stored.Key, Value: []byte(value), If: storage.AnyVersion}
		if err := w.Engine.Write(t.Context(), id.Service, []storage.Change{change}); err != nil {
			t.Fatal(err)
		}
		w.mustAsk(red, 1, "ik_operator")
		w.Pass(3 * time.Second)
		wantMailed(t, "the others", w.sweep(), address(account.Admin, red), address(account.Approver, red))
		w.Pass(time.Hour)
		wantMailed(t, "later", w.sweep())
	})
}

// Nobody is notified of a question that is decided before its mail is due.
func TestDecidedQuestionIsNotTold(t *testing.T) {
	w := newVoterWorld(t, enginetest.Pebble(t))
	a := w.mustAsk(red, 1, "ik_operator")
	_, err := w.approvals.Vote(t.Context(), red, a.ID, approval.Ballot{Account: w.asker, Email: address(account.Owner, red), Vote: approval.Deny, Action: a.ActionDigest})
	if err != nil {
		t.Fatal(err)
	}
	w.Pass(3 * time.Second)
	wantMailed(t, "decided", w.sweep())
	w.mustAsk(red, 2, "ik_operator")
	w.Pass(3 * time.Second)
	wantMailed(t, "the next", w.sweep(), address(account.Owner, red), address(account.Admin, red), address(account.Approver, red))
}

// If an agent keeps asking, a user gets one mail in ten minutes, and another organization's question is still
// notified without delay.
func TestFloodOfQuestions(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newVoterWorld(t, open(t))
		n, mails := 0, map[string]int{}
		for step := range 8 { // each 150 s: 20 minutes
			for range 25 {
				n++
				w.mustAsk(red, n, "ik_operator")
			}
			if step == 3 {
				w.mustAsk(blue, 1, "ik_operator")
			}
			w.Pass(3 * time.Second)
			got := w.sweep()
			for to, all := range got {
				mails[to] += len(all)
				if text := all[0].Text; strings.Count(text, "asked by") > 10 || len(text) > 3000 {
					t.Errorf("got %q", text)
				}
			}
			if notified := len(got[address(account.Approver, blue)]); notified != map[bool]int{true: 1}[step == 3] {
				t.Errorf("step %d: %d mails to blue's approver", step, notified)
			}
			w.Pass(147 * time.Second)
		}
		for _, role := range []account.Role{account.Owner, account.Admin, account.Approver} {
			if got := mails[address(role, red)]; got != 2 {
				t.Errorf("%s got %d mails for %d questions in 20 minutes, want 2", role, got, n)
			}
		}
		w.Pass(10 * time.Minute) // the rest is notified when the pause is over, without another question
		got := w.sweep()
		wantMailed(t, "the rest", got, address(account.Owner, red), address(account.Admin, red), address(account.Approver, red))
		if text := got[address(account.Owner, red)][0].Text; !strings.Contains(text, "200 are pending in all") {
			t.Errorf("got %q", text)
		}
	})
}

// One sweep reaches all voters, even if there are more than one look writes mails to.
func TestManyVoters(t *testing.T) {
	w := newVoterWorld(t, enginetest.Pebble(t))
	const more = 120
	for i := range more {
		who, _, err := w.accounts.Ensure(t.Context(), fmt.Sprintf("voter-%d@example.com", i), "")
		if err != nil {
			t.Fatal(err)
		}
		record, _, err := w.accounts.NewMembership(t.Context(), blue, who.ID, account.Approver)
		if err == nil {
			err = w.Engine.Write(t.Context(), blue, []storage.Change{record})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.mustAsk(blue, 1, "ik_operator")
	w.Pass(3 * time.Second)
	total := map[string]int{}
	for range 3 {
		for to, all := range w.sweep() {
			total[to] += len(all)
		}
		w.Pass(time.Second)
	}
	if len(total) != more+3 {
		t.Errorf("%d people got mails, want %d", len(total), more+3)
	}
	for to, n := range total {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
}

// The service dies before or after any write between the question and the mails: each voter is notified, and no
// question is lost.
func TestDeathAtEachWrite(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for _, after := range []bool{false, true} {
			n := 0
			for dieAt(t, open(t), n, after) {
				n++
			}
			if n < 6 { // due entries, question, due entry of mails, mails, rest
				t.Errorf("died at %d writes, want 6 or more", n)
			}
		}
	})
}

func dieAt(t *testing.T, engine storage.Engine, n int, after bool) bool {
	t.Helper()
	m := &enginetest.Mortal{Engine: engine}
	w := newVoterWorld(t, m)
	m.DieAt(n, after)
	_, err := w.ask(red, 1, "ik_operator")
	requested := err == nil
	w.Pass(3 * time.Second)
	total := map[string]int{}
	count := func() {
		for to, all := range w.sweep() {
			total[to] += len(all)
		}
	}
	count()
	died := m.Dead()
	if err := w.Ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	w = &voterWorld{Service: w.Again(t, engine), t: t, sent: w.sent, asker: w.asker, bots: w.bots}
	w.open()
	if !requested {
		w.mustAsk(red, 1, "ik_operator")
	}
	for range 3 {
		w.Pass(5 * time.Second)
		count()
	}
	for _, role := range []account.Role{account.Owner, account.Admin, account.Approver} {
		if got := total[address(role, red)]; got < 1 || got > 2 {
			t.Errorf("death at write %d, done %v: %s got %d mails", n, after, role, got)
		}
	}
	return died
}
