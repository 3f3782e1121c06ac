package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// postbox records the messages that the outbox sends.
type postbox struct {
	mu       sync.Mutex
	messages []mail.Message
}

func (p *postbox) Send(_ context.Context, m mail.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, m)
	return nil
}

// gone is a receiver that answers 410.
type gone struct{}

func (gone) CheckURL(string) error { return nil }

func (gone) Post(context.Context, string, http.Header, []byte) (egress.Answer, error) {
	return egress.Answer{Status: 410}, nil
}

// named has the names of organizations.
type named struct{}

func (named) Summary(_ context.Context, t id.Tenant) (org.Summary, error) {
	return org.Summary{ID: ledgertest.Organization(t), Name: fmt.Sprintf("Number %d", t), Slug: "slug"}, nil
}

// world has two organizations with members of all roles.
type world struct {
	*ledgertest.Service
	t        testing.TB
	outbox   *mail.Outbox
	sent     postbox
	accounts *account.Accounts
	webhooks *webhook.Sender
}

func newWorld(t testing.TB, engine storage.Engine) *world {
	w := &world{Service: ledgertest.On(t, engine), t: t}
	w.outbox = mail.New(mail.Options{Records: engine, Keyring: w.Keyring(), Transport: &w.sent, Clock: w.Clock})
	w.accounts = account.New(account.Options{Records: engine, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	w.webhooks = webhook.New(webhook.Options{Records: engine, Keyring: w.Keyring(), Caller: gone{}, Events: w.SystemEvents, Clock: w.Clock,
		Mail: notify.OrganizationMail{Outbox: w.outbox, Organizations: named{}, Accounts: w.accounts, PublicURL: "https://log.example/"}})
	for _, tenant := range []id.Tenant{red, blue} {
		var members []storage.Change
		for _, role := range []account.Role{account.Owner, account.Admin, account.PolicyEditor, account.Approver, account.Auditor, account.Member} {
			members = append(members, w.member(tenant, fmt.Sprintf("%s-%d@example.com", role, tenant), role))
		}
		w.Found(t, tenant, members...)
	}
	return w
}

func (w *world) member(tenant id.Tenant, email string, role account.Role) storage.Change {
	w.t.Helper()
	who, _, err := w.accounts.Ensure(w.t.Context(), email, "")
	if err != nil {
		w.t.Fatal(err)
	}
	record, _, err := w.accounts.NewMembership(w.t.Context(), tenant, who.ID, role)
	if err != nil {
		w.t.Fatal(err)
	}
	return record
}

// suspend suspends a member.
func (w *world) suspend(tenant id.Tenant, role account.Role) {
	w.t.Helper()
	all, err := w.accounts.Members(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(m account.StoredMembership) bool { return m.Role == role })
	all[at].Suspended = true
	change, err := all[at].Put()
	if err == nil {
		err = w.Engine.Write(w.t.Context(), tenant, []storage.Change{change})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// disable creates an endpoint whose receiver answers 410, and sends it a message.
func (w *world) disable(tenant id.Tenant) webhook.EndpointID {
	w.t.Helper()
	address := "https://hooks.example/a-secret"
	e, err := w.webhooks.CreateEndpoint(w.t.Context(), tenant, "acc_ann", webhook.EndpointPatch{URL: &address, Events: &[]string{"approval.*"}})
	if err != nil {
		w.t.Fatal(err)
	}
	changes, err := w.webhooks.WriteDelivery(w.t.Context(), tenant, ledgertest.Organization(tenant),
		webhook.Message{Type: "approval.pending", Data: []byte(`{}`)})
	if err == nil {
		err = w.Engine.Write(w.t.Context(), tenant, changes)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	ledgertest.RunUntilDone(w.t, w.Engine, "outbox_due", w.Clock, w.webhooks.Run)
	return e.ID
}

func (w *world) deliver() (to []string, messages []mail.Message) {
	w.t.Helper()
	ledgertest.RunUntilDone(w.t, w.Engine, "mail_due", w.Clock, w.outbox.Run)
	w.sent.mu.Lock()
	defer w.sent.mu.Unlock()
	messages, w.sent.messages = w.sent.messages, nil
	for _, m := range messages {
		to = append(to, m.To)
	}
	slices.Sort(to)
	return to, messages
}

// When the service disables an endpoint, the active owners and admins of its organization are notified. The mail
// contains no secret of the address.
func TestDisabledEndpointIsTold(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		name := w.disable(red)
		to, messages := w.deliver()
		want := []string{fmt.Sprintf("admin-%d@example.com", red), fmt.Sprintf("owner-%d@example.com", red)}
		if !slices.Equal(to, want) {
			t.Fatalf("got mails to %v, want %v", to, want)
		}
		for _, m := range messages {
			text := fmt.Sprintf("The webhook receiver %s at hooks.example was switched off: the receiver answered that it is gone (410).\n\n"+
				"Organization: Number %d (slug)\nService: https://log.example\n", name, red)
			if !strings.HasPrefix(m.Text, text) || strings.Contains(m.Text, "a-secret") || m.Subject != "A webhook receiver was switched off" {
				t.Errorf("got %+v", m)
			}
		}
		w.suspend(blue, account.Owner)
		w.disable(blue)
		if to, _ := w.deliver(); !slices.Equal(to, []string{fmt.Sprintf("admin-%d@example.com", blue)}) {
			t.Errorf("blue: got mails to %v", to)
		}
		w.outbox.Transport = nil
		w.disable(red)
		w.outbox.Transport = &w.sent
		if to, _ := w.deliver(); len(to) != 0 {
			t.Errorf("without a mail server: got %v", to)
		}
	})
}

// The holder of an account with an unproved address cannot cause more mails to a stranger than invitations can.
func TestUnprovedAddressIsMailedAsAStranger(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t))
		mails := notify.AccountMail{Outbox: w.outbox, PublicURL: "https://log.example"}
		proved := account.Account{ID: "acc_1", Email: "ann@example.com", Proof: account.ProvedByMail}
		unproved := account.Account{ID: "acc_2", Email: "victim@example.com", Proof: account.Unproved}
		for _, tc := range []struct {
			who         account.Account
			first, more int // written mails
		}{{proved, 1, 1}, {unproved, 1, 0}} {
			for i := range 3 {
				want := tc.first
				if i > 0 {
					want = tc.more
				}
				got, err := mails.FactorMail(t.Context(), tc.who, account.AddedPasskey)
				if err != nil || len(got) > 0 != (want > 0) {
					t.Errorf("%s, mail %d: got %d changes, %v, want mailed %v", tc.who.Email, i, len(got), err, want > 0)
				}
			}
			if got, err := mails.PasswordMail(t.Context(), tc.who); err != nil || len(got) > 0 != (tc.more > 0) {
				t.Errorf("%s, password: got %d changes, %v", tc.who.Email, len(got), err)
			}
			ofOrganization := notify.OrganizationMail{Outbox: w.outbox, Organizations: named{}, Accounts: w.accounts, PublicURL: "https://log.example"}
			got, err := ofOrganization.VoterKeyMail(t.Context(), red, tc.who, true, "thumbprint")
			if err != nil || len(got) > 0 != (tc.more > 0) {
				t.Errorf("%s, voter key: got %d changes, %v", tc.who.Email, len(got), err)
			}
			got, err = ofOrganization.SlackLinkMail(t.Context(), red, tc.who, slacklink.Link{LinkID: "slk_1"})
			if err != nil || len(got) > 0 != (tc.more > 0) {
				t.Errorf("%s, Slack link: got %d changes, %v", tc.who.Email, len(got), err)
			}
		}
	})
}

// The mail about a new link names the user of Slack and the organization, and where to end it. A name never becomes a link or a line.
func TestSlackLinkMail(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	mails := notify.OrganizationMail{Outbox: w.outbox, Organizations: named{}, Accounts: w.accounts, PublicURL: "https://log.example/"}
	who := account.Account{ID: "acc_ann", Email: "ann@example.com", Proof: account.ProvedByMail}
	for i, c := range []struct {
		of          id.Tenant
		name, shown string
	}{{red, "Ann\nEvil: x", "Ann?Evil: x"}, {blue, "verify at evil.example/login", "(on the page)"}} {
		of := c.of
		changes, err := mails.SlackLinkMail(t.Context(), of, who, slacklink.Link{User: slack.User{Team: "T1", ID: fmt.Sprint("U", i)}, LinkID: "slk_1", Name: c.name})
		if err == nil {
			err = w.Engine.Write(t.Context(), of, changes)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, sent := w.deliver()
		summary, _ := named{}.Summary(t.Context(), of)
		if len(sent) != 1 || sent[0].To != who.Email || sent[0].Subject != "A Slack user votes in your name now" {
			t.Fatalf("got %+v", sent)
		}
		for _, want := range []string{fmt.Sprintf("Slack user: U%d, with the name “%s”\nSlack workspace: T1\nOrganization: %s", i, c.shown, summary.Name), "https://log.example/account/slack\n"} {
			if !strings.Contains(sent[0].Text, want) {
				t.Errorf("got %q, want %q", sent[0].Text, want)
			}
		}
	}
}

// The accounts of an organization cause no more mails to new addresses than its invitations.
func TestConfirmMailsCountForTheOrganization(t *testing.T) {
	engine := storagetest.NewModel()
	w := newWorld(t, engine)
	outbox := mail.New(mail.Options{Records: engine, Keyring: w.Keyring(), Transport: &w.sent, DailyMails: 2, Clock: w.Clock})
	l := notify.AccountMail{Outbox: outbox, PublicURL: "https://log.example"}
	confirm := func(t id.Tenant, address string) error {
		_, err := l.ConfirmMail(w.t.Context(), account.EmailChange{Account: "acc_1", Organization: t, Email: address, Token: "x"})
		return err
	}
	for i := range 3 {
		err := confirm(red, fmt.Sprintf("v%d@example.com", i))
		if limited := fault.Is(err, fault.RateLimited); limited != (i == 2) || !limited && err != nil {
			t.Errorf("mail %d: got %v", i, err)
		}
	}
	if err := confirm(blue, "v9@example.com"); err != nil {
		t.Errorf("another organization: %v", err)
	}
}
