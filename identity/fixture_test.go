package identity_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/identity/platform"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/clock/clocktest"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/openapitest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

var traffic = openapitest.Of("identity")

func TestMain(m *testing.M) { os.Exit(traffic.Main(m)) }

const (
	platformSecret = "platform-secret-for-tests"
	publicURL      = "https://Log.Example/ledger"
	email          = "ann@example.com"
	password       = "correct horse battery"
)

// world is the API over a complete service without organizations.
type world struct {
	*ledgertest.Service
	t        testing.TB
	orgs     *org.Orgs
	accounts *account.Accounts
	records  *storagetest.Counter // of accounts and mail
	factors  *factor.Factors
	options  identity.Options
	members  *member.Members
	quota    *quota.Quota // limits the rate of member changes
	setup    *provision.Setup
	mail     *mail.Outbox
	sent     postbox
	handler  http.Handler
	routed   []edge.Listed // the routes of the API
	log      lockedBuffer
}

// lockedBuffer is a log that several goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func newWorld(t testing.TB, change ...func(*identity.Options)) *world {
	t.Helper()
	return newWorldOf(t, func(d ledgertest.Disclosure) *ledgertest.Service { return ledgertest.New(t, d) }, change...)
}

// newWorldOf returns the world of a service, which is created with the organizations' settings.
func newWorldOf(t testing.TB, create func(ledgertest.Disclosure) *ledgertest.Service,
	change ...func(*identity.Options)) *world {
	t.Helper()
	w := &world{t: t}
	s := create(func(ctx context.Context, state *log.State) (id.Disclosure, error) {
		return w.orgs.Disclosure(ctx, state)
	})
	orgs, err := org.New(org.Options{Records: s.Store, Events: s.SystemEvents, Ledgers: s.Ledgers, Clock: s.Clock,
		Providers: []string{"company"}})
	if err != nil {
		t.Fatal(err)
	}
	w.Service, w.orgs, w.records = s, orgs, &storagetest.Counter{RecordStore: s.Store}
	w.mail = mail.New(mail.Options{Records: w.records, Keyring: s.SystemEvents.Keyring, Transport: &w.sent, Clock: s.Clock})
	letters := notify.AccountMail{Outbox: w.mail, PublicURL: publicURL}
	w.accounts = account.New(account.Options{
		Records: w.records, Clock: s.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}, Mail: letters,
		Factors: func() account.Factors { return w.factors },
	})
	w.quota = &quota.Quota{Records: s.Store, Clock: s.Clock}
	w.members = member.New(member.Options{
		Records: s.Store, Events: s.SystemEvents, Accounts: w.accounts, Clock: s.Clock,
		Quota: w.quota,
	})
	host, err := provision.ParseHost(strings.ToLower(publicURL))
	if err != nil {
		t.Fatal(err)
	}
	founder := &provision.Provisioner{
		Ledgers: s.Ledgers, Organizations: orgs, Accounts: w.accounts, Keyring: s.SystemEvents.Keyring, Host: host,
		Agents: agent.New(agent.Options{Records: s.Store, Events: s.SystemEvents, Clock: s.Clock}),
	}
	w.setup = &provision.Setup{Store: s.Store, Provisioner: founder, Clock: s.Clock}
	o := identity.Options{
		Edge:     &edge.Edge{Passer: traffic.Passer(), Logger: slog.New(slog.NewJSONHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		Accounts: w.accounts, Members: w.members, Orgs: orgs, Provisioner: founder, Setup: w.setup, Mail: letters,
		Operator: &platform.Calls{Provisioner: founder, Orgs: orgs, Clock: clock.New(clocktest.New(), clock.Start{}),
			Accounts: w.accounts},
		Browsers:       s.SystemEvents.Keyring,
		PlatformSecret: platformSecret, PublicURL: publicURL,
	}
	for _, f := range change {
		f(&o)
	}
	w.factors, err = factor.New(factor.Options{Records: s.Store, Accounts: w.accounts, Sealer: s.SystemEvents.Keyring,
		PublicURL: o.PublicURL, Clock: s.Clock})
	if err != nil {
		t.Fatal(err)
	}
	o.Factors, o.Operator.Factors = w.factors, w.factors
	w.options = o
	w.serveWith(func(*identity.Options) {})
	return w
}

// serveWith serves with modified options.
func (w *world) serveWith(change func(*identity.Options)) {
	w.t.Helper()
	change(&w.options)
	server, err := identity.New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	router := w.options.Edge.Router()
	server.Routes(router)
	w.routed = router.List()
	w.handler = traffic.Watch(w.t, router)
}

// serveAccounts serves with accounts whose records are in another store.
func (w *world) serveAccounts(records storage.RecordStore) {
	accounts := account.New(account.Options{Records: records, Clock: w.Clock,
		Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	w.serveWith(func(o *identity.Options) { o.Accounts = accounts })
}

// call sends a request; header is name, value, name, value.
func (w *world) call(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// callFrom is call from a network address that no other call uses.
func (w *world) callFrom(address, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = address + ":1234"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// platform sends a call with the platform secret.
func (w *world) platform(method, path, body string) *httptest.ResponseRecorder {
	return w.call(method, path, body, "X-Platform-Secret", platformSecret)
}

const organizations = "/v1/id/platform/organizations"

// made is the answer to the creation of an organization.
type made struct {
	OrganizationID string `json:"organization_id"`
	Slug           string `json:"slug"`
	Origin         string `json:"origin"`
	LogKey         string `json:"log_key"`
	MembershipID   string `json:"membership_id"`
	Account        string `json:"account"`
	Agent          struct {
		AgentID    string `json:"agent_id"`
		KeyID      string `json:"key_id"`
		PrivateKey string `json:"private_key_b64"`
		PublicKey  string `json:"public_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		KeyID  string `json:"key_id"`
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

// organization creates an organization whose owner is ann. From the second one on, she accepts it by signing in.
func (w *world) organization(slug string) made {
	w.t.Helper()
	given := `,"admin_password":"` + password + `"`
	if _, err := w.accounts.Find(w.t.Context(), email); err == nil {
		given = ""
	}
	answer := w.platform("POST", organizations, `{"name":"`+strings.ToUpper(slug)+`","slug":"`+slug+`","admin_email":"`+email+`"`+given+`}`)
	var m made
	w.decode(answer, 201, &m)
	if m.Account == "known" {
		w.decode(w.call("POST", login, `{"email":"`+email+`","password":"`+password+`","organization_id":"`+m.OrganizationID+`"}`), 200, &signedIn{})
	}
	return m
}

// prove stores a proof for the address of an account, without a takeover.
func (w *world) prove(email string) {
	w.t.Helper()
	w.changeStored(email, func(members map[string]any) { members["proof"] = map[string]string{"by": "mail"} })
}

// changeStored changes the stored record of the account with an address.
func (w *world) changeStored(email string, change func(members map[string]any)) {
	w.t.Helper()
	who, err := w.accounts.Find(w.t.Context(), email)
	if err != nil {
		w.t.Fatal(err)
	}
	stored, err := w.Store.Get(w.t.Context(), id.Service, "account", string(who.ID))
	if err != nil {
		w.t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(stored.Value, &members); err != nil {
		w.t.Fatal(err)
	}
	change(members)
	value, err := json.Marshal(members)
	if err == nil {
		err = w.Store.Write(w.t.Context(), id.Service, []storage.Change{{Kind: "account", Key: string(who.ID), Value: value, If: stored.Version}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// decode decodes an answer into v. The answer must have the given status and no members that v lacks.
func (w *world) decode(answer *httptest.ResponseRecorder, status int, v any) {
	w.t.Helper()
	if answer.Code != status {
		w.t.Fatalf("got %d %s, want %d", answer.Code, answer.Body, status)
	}
	d := json.NewDecoder(bytes.NewReader(answer.Body.Bytes()))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		w.t.Fatalf("%v in %s", err, answer.Body)
	}
}

// answers checks the status and the body of an answer.
func answers(t testing.TB, name string, answer *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if answer.Code != status || answer.Body.String() != body {
		t.Errorf("%s: got %d %s, want %d %s", name, answer.Code, answer.Body, status, body)
	}
}

func refusal(message string) string { return `{"error":"` + message + `"}` }
