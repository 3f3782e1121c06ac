package voterkey_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify/signedvote"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
	page = "https://log.example"
)

// named maps organizations to their names.
type named struct{}

func (named) Summary(_ context.Context, t id.Tenant) (org.Summary, error) {
	return org.Summary{ID: ledgertest.Organization(t), Name: fmt.Sprintf("Number %d", t), Slug: "slug"}, nil
}

// postbox collects the mails that are sent.
type postbox struct{ messages []mail.Message }

func (p *postbox) Send(_ context.Context, m mail.Message) error {
	p.messages = append(p.messages, m)
	return nil
}

// world has two organizations in which ann is an owner and bob an approver.
type world struct {
	*ledgertest.Service
	t        *testing.T
	accounts *account.Accounts
	factors  *factor.Factors
	keys     *voterkey.Keys
	members  *member.Members
	outbox   *mail.Outbox
	sent     postbox
}

// onEach runs a test on each engine.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := &world{Service: ledgertest.On(t, open(t)), t: t}
		w.accounts = account.New(account.Options{Records: w.Engine, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1},
			Factors: func() account.Factors { return w.factors }})
		var err error
		w.factors, err = factor.New(factor.Options{Records: w.Engine, Accounts: w.accounts, Sealer: w.Keyring(), PublicURL: page, Clock: w.Clock})
		if err != nil {
			t.Fatal(err)
		}
		w.outbox = mail.New(mail.Options{Records: w.Engine, Keyring: w.Keyring(), Transport: &w.sent, Clock: w.Clock})
		w.keys = voterkey.New(voterkey.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Accounts: w.accounts,
			Factors: w.factors, Clock: w.Clock,
			Mail: notify.OrganizationMail{Outbox: w.outbox, Organizations: named{}, Accounts: w.accounts, PublicURL: page + "/"}})
		w.members = member.New(member.Options{Records: w.Engine, Events: w.SystemEvents, Accounts: w.accounts, Clock: w.Clock,
			Quota: &quota.Quota{Records: w.Engine, Clock: w.Clock}, VoterKeys: w.keys})
		for _, tenant := range []id.Tenant{red, blue} {
			var records []storage.Change
			for name, role := range map[string]account.Role{"ann": account.Owner, "bob": account.Approver} {
				record, _, err := w.accounts.NewMembership(t.Context(), tenant, w.account(name).ID, role)
				if err != nil {
					t.Fatal(err)
				}
				records = append(records, record)
			}
			w.Found(t, tenant, records...)
		}
		for _, name := range []string{"ann", "bob"} { // the operator proves the address
			if err := w.accounts.SetPassword(t.Context(), name+"@example.com", "correct horse battery"); err != nil {
				t.Fatal(err)
			}
		}
		test(t, w)
	})
}

func (w *world) account(name string) account.Account {
	w.t.Helper()
	who, _, err := w.accounts.Ensure(w.t.Context(), name+"@example.com", "")
	if err != nil {
		w.t.Fatal(err)
	}
	return who
}

// passkey gives an account a passkey whose answers have the given flags.
func (w *world) passkey(name string, flags byte) *passkeytest.Authenticator {
	w.t.Helper()
	key := passkeytest.New(w.t, page)
	key.Flags |= flags
	key.AddTo(w.factors, w.account(name))
	return key
}

// register registers a passkey as a voter key.
func (w *world) register(t id.Tenant, name string, key *passkeytest.Authenticator) {
	w.t.Helper()
	who := w.account(name)
	begun, err := w.keys.Begin(w.t.Context(), t, who.ID, key.Credential)
	if err != nil {
		w.t.Fatal(err)
	}
	possession := key.SignText(begun.Text, begun.RPID, begun.Time)
	if _, err := w.keys.Register(w.t.Context(), t, who, key.Credential, possession, nil, account.Visit{}); err != nil {
		w.t.Fatal(err)
	}
}

// vote signs a vote and has the service check it.
func (w *world) vote(t id.Tenant, name string, key *passkeytest.Authenticator) error {
	w.t.Helper()
	vote := signedvote.Vote{Origin: w.State(w.t, t).Identity().Origin, ApprovalID: "apr_1", ActionDigest: id.Hash{7}, Vote: "approve"}
	bucket := signedvote.Bucket(id.InstantOf(w.Clock()))
	text, err := vote.Text(bucket)
	if err != nil {
		w.t.Fatal(err)
	}
	signed := key.SignText(text, "log.example", bucket)
	return w.keys.CheckVote(w.t.Context(), t, w.account(name).ID, vote, &signed, account.Visit{})
}

// retirements counts the events of an organization that retire a passkey.
func (w *world) retirements(t id.Tenant, key *passkeytest.Authenticator) (n int) {
	w.t.Helper()
	for _, s := range w.Audit(w.t, t) {
		if s.Kind == signedvote.KeyKind && strings.Contains(s.Payload, `"transition":"retired"`) &&
			strings.Contains(s.Payload, signedvote.Bytes(key.Credential).String()) {
			n++
		}
	}
	return n
}

// wantKeys checks the number of voter keys of an organization.
func (w *world) wantKeys(what string, t id.Tenant, want int) {
	w.t.Helper()
	if found, _, err := w.keys.List(w.t.Context(), t, "", "", 10); err != nil || len(found) != want {
		w.t.Errorf("%s: got %v, %v, want %d keys", what, found, err, want)
	}
}

func wantRefused(t *testing.T, what string, err error, kind fault.Kind, code string) {
	t.Helper()
	if got := fault.Of(err); err == nil || got.Kind != kind || got.Code != code {
		t.Errorf("%s: got %v, want kind %v, code %s", what, err, kind, code)
	}
}

// When a membership ends, events in this organization alone retire the member's voter keys.
func TestEndOfMembershipRetires(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		key := w.passkey("bob", 0)
		w.register(red, "bob", key)
		w.register(blue, "bob", key)
		if err := w.vote(red, "bob", key); err != nil {
			t.Fatal(err)
		}
		bob, err := w.accounts.Membership(t.Context(), red, w.account("bob").ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.members.Remove(t.Context(), red, &account.Session{Account: w.account("ann").ID}, bob.ID); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, "after the end", w.vote(red, "bob", key), fault.Invalid, "signature_refused")
		w.wantKeys("red", red, 0)
		w.wantKeys("blue", blue, 1)
		if r, b := w.retirements(red, key), w.retirements(blue, key); r != 1 || b != 0 {
			t.Errorf("%d retirements in red, %d in blue", r, b)
		}
		if err := w.vote(blue, "bob", key); err != nil {
			t.Errorf("blue: %v", err)
		}
	})
}

// When a passkey is removed, by the person or by the operator, events in each organization retire its voter keys. Even
// before these events, the keys sign nothing.
func TestRemovalOfPasskeyRetires(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		key, kept := w.passkey("bob", 0), w.passkey("ann", 0)
		for _, tenant := range []id.Tenant{red, blue} {
			w.register(tenant, "bob", key)
			w.register(tenant, "ann", kept)
		}
		all, err := w.factors.Summary(t.Context(), w.account("bob").ID)
		if err != nil || len(all.Passkeys) != 1 {
			t.Fatal(all, err)
		}
		if _, err := w.factors.Remove(t.Context(), w.account("bob"), all.Passkeys[0].ID, account.Visit{}); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, "after the removal", w.vote(red, "bob", key), fault.Invalid, "signature_refused")
		if err := w.factors.RemoveAll(t.Context(), w.account("ann").ID); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, "after the operator's removal", w.vote(red, "ann", kept), fault.Invalid, "signature_refused")
		for _, name := range []string{"ann", "bob"} { // as before a vote is counted
			if err := w.members.StateSignIn(t.Context(), red, w.account(name).ID); err != nil {
				t.Fatal(err)
			}
		}
		w.Pass(time.Minute)
		if err := w.members.Sweep(t.Context()); err != nil { // as in the background
			t.Fatal(err)
		}
		for _, tenant := range []id.Tenant{red, blue} {
			w.wantKeys(fmt.Sprint(tenant), tenant, 0)
			for name, key := range map[string]*passkeytest.Authenticator{"bob": key, "ann": kept} {
				if n := w.retirements(tenant, key); n != 1 {
					t.Errorf("organization %d: %d retirements of %s's key", tenant, n, name)
				}
			}
		}
	})
}

// A backup-eligible passkey stays one: an answer without the flag is refused. Another passkey may become one.
func TestBackupEligibleFlag(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		synced, bound := w.passkey("ann", passkeytest.BackupEligible|passkeytest.BackedUp), w.passkey("bob", 0)
		w.register(red, "ann", synced)
		w.register(red, "bob", bound)
		synced.Flags &^= passkeytest.BackupEligible | passkeytest.BackedUp
		wantRefused(t, "1 to 0", w.vote(red, "ann", synced), fault.Unauthorized, "passkey_refused")
		synced.Flags |= passkeytest.BackupEligible
		if err := w.vote(red, "ann", synced); err != nil {
			t.Errorf("no longer backed up: %v", err)
		}
		bound.Flags |= passkeytest.BackupEligible
		if err := w.vote(red, "bob", bound); err != nil {
			t.Errorf("0 to 1: %v", err)
		}
		bound.Flags &^= passkeytest.BackupEligible
		wantRefused(t, "0 to 1 to 0", w.vote(red, "bob", bound), fault.Unauthorized, "passkey_refused")
	})
}

// The person gets a mail for each registration and each retirement of a key.
func TestVoterKeyMails(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		key := w.passkey("bob", 0)
		deliver := func(subject, change string) {
			t.Helper()
			ledgertest.RunUntilDone(t, w.Engine, "mail_due", w.Clock, w.outbox.Run)
			got := w.sent.messages
			w.sent.messages = nil
			want := fmt.Sprintf("%s.\n\nOrganization: Number %d (slug)\nService: %s\nPasskey (thumbprint): ", change, red, page)
			if len(got) != 1 || got[0].To != "bob@example.com" || got[0].Subject != subject || !strings.HasPrefix(got[0].Text, want) ||
				!strings.HasSuffix(got[0].Text, "If it was not you, tell the owners of the organization at once.\n") {
				t.Errorf("got %+v, want %q and %q", got, subject, want)
			}
		}
		for range 2 { // the second time is a registration of its own
			w.register(red, "bob", key)
			deliver("A passkey signs your votes now", "A passkey was registered to sign your votes")
			if err := w.keys.Retire(t.Context(), red, w.account("ann").ID, w.account("bob").ID, key.Credential); err != nil {
				t.Fatal(err)
			}
			deliver("A passkey no longer signs your votes", "A passkey of yours no longer signs votes")
			w.Pass(time.Hour)
		}
	})
}

// If pages are served without TLS, no voter key can be registered, because every verifier would refuse it.
func TestInsecureOrigin(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const insecure = "http://log.example"
		factors, err := factor.New(factor.Options{Records: w.Engine, Accounts: w.accounts, Sealer: w.Keyring(), PublicURL: insecure, Clock: w.Clock})
		if err != nil {
			t.Fatal(err)
		}
		w.keys.Factors = factors
		key := passkeytest.New(t, insecure)
		key.AddTo(factors, w.account("bob"))
		_, err = w.keys.Begin(t.Context(), red, w.account("bob").ID, key.Credential)
		wantRefused(t, "begin", err, fault.Conflict, "insecure_origin")
		_, err = w.keys.Register(t.Context(), red, w.account("bob"), key.Credential, signedvote.Assertion{}, nil, account.Visit{})
		wantRefused(t, "register", err, fault.Conflict, "insecure_origin")
		w.wantKeys("afterwards", red, 0)
	})
}
