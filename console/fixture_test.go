package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/openapitest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/trust"
)

var traffic = openapitest.Of("console")

func TestMain(m *testing.M) {
	os.Exit(traffic.MainOf(func() int { return enginetest.Main(m) }))
}

const (
	red   = ledgertest.Red
	blue  = ledgertest.Blue
	green = id.Tenant(3)
)

// world is the surface on the real services, with two organizations in which each role has a session. Its token
// consists of the organization's slug and the role, as in "red-owner".
type world struct {
	*ledgertest.Service
	t       testing.TB
	orgs    *org.Orgs
	agents  *agent.Agents
	first   map[id.Tenant]agent.Credentials
	handler http.Handler
	plain   http.Handler // without the comparison with the OpenAPI document, which lacks the pages of links
	surface *console.Server
	routed  []edge.Listed // the routes of the surface

	factors   *factor.Factors
	accounts  *account.Accounts
	policies  *policystore.Policies
	approvals *approval.Approvals
	workflows *workflow.Workflows
	webhooks  *webhook.Sender
	exporter  *streamexport.Exporter
	erasures  *erasure.Erasures
	tokens    *apitoken.Tokens
	shares    *share.Links
	links     *slacklink.Links
	slack     *slackHost
	roles     roles
	house     *witnesstest.Witness // the service's witness
	witnesses *witness.Witnesses
}

func newWorld(t testing.TB, change ...func(*console.Options)) *world {
	t.Helper()
	return newWorldOf(t, func(d ledgertest.Disclosure) *ledgertest.Service { return ledgertest.New(t, d) }, change...)
}

// newWorldOf returns the world of a service, which is created with the organizations' settings.
func newWorldOf(t testing.TB, create func(ledgertest.Disclosure) *ledgertest.Service,
	change ...func(*console.Options)) *world {
	t.Helper()
	w := &world{t: t, first: map[id.Tenant]agent.Credentials{}}
	w.Service = create(func(ctx context.Context, s *log.State) (id.Disclosure, error) {
		return w.orgs.Disclosure(ctx, s)
	})
	var err error
	w.house = witnesstest.New(t, "house.example")
	client := egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	rules := witness.Rules{Address: client.CheckURL}
	if rules.Service, err = trust.Parse([]byte(w.house.PolicyLine("house") + "quorum house\n")); err != nil {
		t.Fatal(err)
	}
	bounds := &quota.Quota{Records: w.Engine, Clock: w.Clock,
		Plan: func(ctx context.Context, t id.Tenant) (quota.Limits, error) { return w.orgs.Limits(ctx, t) }}
	w.agents = agent.New(agent.Options{Records: w.Engine, Events: w.SystemEvents, Quota: bounds, Keyring: w.Keyring(), Clock: w.Clock})
	if w.orgs, err = org.New(org.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Quota: bounds, Agents: w.agents, Clock: w.Clock, Witnesses: rules,
		Providers: []string{"company"}}); err != nil {
		t.Fatal(err)
	}
	w.witnesses = witness.New(witness.Options{Store: w.Engine, Ledgers: w.Ledgers, Organizations: w.orgs, Client: client, Service: rules.Service, Interval: time.Millisecond})
	edge := &edge.Edge{Passer: traffic.Passer(), Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))}
	router := edge.Router()
	w.policies = policystore.New(policystore.Options{Records: w.Engine, Events: w.SystemEvents, Quota: bounds, Clock: w.Clock, Settings: w.orgs})
	w.webhooks = webhook.New(webhook.Options{Records: w.Engine, Keyring: w.Keyring(), Caller: client, Events: w.SystemEvents, Pace: bounds, PublicURL: "https://ledger.example", Clock: w.Clock})
	w.exporter = streamexport.New(streamexport.Options{Records: w.Engine, Ledgers: w.Ledgers, Keyring: w.Keyring(), Caller: client, Events: w.SystemEvents, Pace: bounds, Clock: w.Clock})
	w.roles = roles{}
	w.approvals = approval.New(approval.Options{
		Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.policies, Agents: w.agents,
		Organizations: w.orgs, Members: w.roles, Keyring: w.Keyring(), Clock: w.Clock,
		Webhooks: w.webhooks,
	})
	w.workflows = workflow.New(workflow.Options{
		Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.policies, Agents: w.agents, Organizations: w.orgs, Clock: w.Clock,
		Approvals: w.approvals,
	})
	w.shares = share.New(share.Options{Records: w.Engine, Events: w.SystemEvents, Pace: bounds, Clock: w.Clock})
	w.tokens = apitoken.New(apitoken.Options{Records: w.Engine, Events: w.SystemEvents, Members: w.roles, Pace: bounds, Clock: w.Clock})
	w.links = slacklink.New(slacklink.Options{Records: w.Engine, Events: w.SystemEvents, Members: w.roles, Keyring: w.Keyring(), Pace: bounds, Clock: w.Clock})
	w.slack = &slackHost{}
	events := index.New(index.Options{Ledgers: w.Ledgers, Store: w.Engine, Clock: w.Clock, Columns: w.orgs.Columns})
	w.erasures = erasure.New(erasure.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Index: events,
		Eraser: &erasure.EnvelopeEraser{Appender: w.SystemEvents, Ledgers: w.Ledgers}, Approvals: w.approvals, Lists: w.approvals,
		Deliveries: w.webhooks, Mails: mail.New(mail.Options{Records: w.Engine, Keyring: w.Keyring(), Clock: w.Clock}), Settings: w.orgs, Pace: bounds, Clock: w.Clock})
	public := publicapi.New(publicapi.Options{Edge: edge, Ledgers: w.Ledgers, Organizations: w.orgs, Agents: w.agents,
		Witnesses: w.witnesses, PublicURL: "https://ledger.example", Clock: w.Clock})
	accounts := account.New(account.Options{Records: w.Engine, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1},
		Factors: func() account.Factors { return w.factors }})
	factors, err := factor.New(factor.Options{Records: w.Engine, Accounts: accounts, Sealer: w.Keyring(), PublicURL: "https://ledger.example", Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	w.factors, w.accounts = factors, accounts
	options := console.Options{
		VoterKeys: voterkey.New(voterkey.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Accounts: accounts, Factors: factors, Clock: w.Clock}),
		Erasures:  w.erasures,
		Events:    &eventlist.Reader{Index: events, Ledgers: w.Ledgers, Organizations: w.orgs, Bundles: public},
		Evidence: &evidence.Exporter{Ledgers: w.Ledgers, Witnesses: w.witnesses, Transparency: public, Agents: w.agents,
			Policies: w.policies, Approvals: w.approvals, Organizations: w.orgs, People: people{}, Events: w.SystemEvents, Index: events, Logger: edge.Logger},
		People: people{}, Members: member.New(member.Options{Records: w.Engine, Events: w.SystemEvents, Clock: w.Clock,
			Accounts: accounts, Quota: bounds}), Sources: sysevent.Sources{Records: w.Engine},
		Edge: edge, Sessions: sessions{}, Orgs: w.orgs, Agents: w.agents, PublicURL: "https://ledger.example",
		Policies: w.policies, Approvals: w.approvals, Workflows: w.workflows, Webhooks: w.webhooks, Witnesses: w.witnesses, Tokens: w.tokens, Shares: w.shares, StreamExports: w.exporter,
		SlackLinks: w.links, Callouts: w.slack,
		Simulator: simulate.New(simulate.Options{Ledgers: w.Ledgers, Clock: w.Clock}),
	}
	for _, f := range change {
		f(&options)
	}
	surface, err := console.New(options)
	if err != nil {
		t.Fatal(err)
	}
	w.surface = surface
	surface.Routes(router)
	w.routed, w.plain = ofMembers(router.List()), router
	w.handler = traffic.Watch(t, router)
	w.found(red, "red")
	w.found(blue, "blue")
	return w
}

func (w *world) found(tenant id.Tenant, slug id.Slug) {
	w.t.Helper()
	records, err := w.orgs.FoundOrganization(w.t.Context(), org.Founding{Tenant: tenant, ID: ledgertest.Organization(tenant), Slug: slug, Name: string(slug), Plan: "free"})
	if err != nil {
		w.t.Fatal(err)
	}
	agents, credentials, err := w.agents.NewAgent(w.t.Context(), tenant, sysevent.Operator, agent.Wanted{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.first[tenant] = credentials
	w.Found(w.t, tenant, append(records, agents...)...)
}

// sessions accepts the tokens of world, one that the store cannot look up, one that causes an internal error, and two
// that no store should return.
type sessions struct{}

func (sessions) Session(_ context.Context, token string) (*account.Session, error) {
	switch token {
	case "lost":
		return nil, fault.New(fault.Unavailable, "Accounts can't be read")
	case "defect":
		return nil, errors.New("a cause")
	case "no-organization":
		return &account.Session{Account: "acc_0", Role: account.Owner}, nil
	}
	token, late := strings.CutSuffix(token, "-late") // without a recently proved factor
	token, way, _ := strings.Cut(token, "+")         // the sign-in method
	slug, role, _ := strings.Cut(token, "-")
	tenant, ok := map[string]id.Tenant{"red": red, "blue": blue, "green": green}[slug]
	if !ok {
		return nil, fault.New(fault.Unauthorized, "whatever")
	}
	return &account.Session{Account: account.ID("acc_" + token), MembershipID: "mem_" + role, Tenant: tenant, Role: account.Role(role), StepUpDue: late,
		SignIn: account.Method(way)}, nil
}

// people returns a name and an address for every account except an unknown one.
type people struct{}

func (people) ByID(_ context.Context, who account.ID) (account.Account, error) {
	text := strings.TrimPrefix(string(who), "acc_")
	if text == "gone" {
		return account.Account{}, fault.New(fault.NotFound, "Not found")
	}
	return account.Account{ID: who, DisplayName: "Ann of " + text, Email: text + "@example.com"}, nil
}

func (people) Find(_ context.Context, email string) (account.Account, error) {
	name, _, is := strings.Cut(email, "@example.com")
	if !is {
		return account.Account{}, fault.New(fault.NotFound, "Not found")
	}
	return account.Account{ID: account.ID("acc_" + name), Email: email}, nil
}

// members have the role that their session token names.
type members struct{}

func (members) Membership(_ context.Context, t id.Tenant, who account.ID) (account.Membership, error) {
	_, role, _ := strings.Cut(strings.TrimPrefix(string(who), "acc_"), "-")
	return account.Membership{Account: who, Tenant: t, Role: account.Role(role)}, nil
}

func (members) ByID(_ context.Context, who account.ID) (account.Account, error) {
	return account.Account{ID: who}, nil
}

// request returns a request of red's owner, unless changed.
func (w *world) request(method, path, body string, change ...func(*http.Request)) *http.Request {
	r := httptest.NewRequestWithContext(w.t.Context(), method, "/v1/console"+path, strings.NewReader(body))
	as("red-owner")(r)
	for _, c := range change {
		c(r)
	}
	return r
}

// as sets the session of a request; "" for none.
func as(token string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Cookie")
		if token != "" {
			r.AddCookie(&http.Cookie{Name: account.CookieName("https://ledger.example"), Value: token})
		}
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// got is an answer.
type got struct {
	status int
	header http.Header
	text   string
}

func (w *world) do(r *http.Request) got {
	w.t.Helper()
	return w.doWith(w.handler, r)
}

func (w *world) doWith(handler http.Handler, r *http.Request) got {
	w.t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r)
	result := recorder.Result()
	text, err := io.ReadAll(result.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return got{result.StatusCode, result.Header, string(text)}
}

// call makes a request that must be answered with a status, and returns the members of the answer.
func (w *world) call(status int, method, path, body string, change ...func(*http.Request)) map[string]any {
	w.t.Helper()
	g := w.do(w.request(method, path, body, change...))
	if g.status != status {
		w.t.Fatalf("%s %s: got %d %s, want %d", method, path, g.status, g.text, status)
	}
	if g.text == "" {
		return nil
	}
	var members map[string]any
	if err := json.Unmarshal([]byte(g.text), &members); err != nil {
		w.t.Fatalf("%s %s: got %s: %v", method, path, g.text, err)
	}
	return members
}

// refuses checks the whole answer to a refused request.
func (w *world) refuses(what string, r *http.Request, status int, message string) {
	w.t.Helper()
	g := w.do(r)
	var body struct{ Error string }
	if err := json.Unmarshal([]byte(g.text), &body); err != nil || g.status != status || body.Error != message {
		w.t.Errorf("%s: got %d %s, want %d %q", what, g.status, g.text, status, message)
	}
	if g.header.Get("Cache-Control") != "no-store" {
		w.t.Errorf("%s: got Cache-Control %q", what, g.header.Get("Cache-Control"))
	}
}

// equal compares members with a JSON text.
func equal(t testing.TB, what string, got map[string]any, want string) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := json.Unmarshal([]byte(want), &parsed); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	wanted, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != string(wanted) {
		t.Errorf("%s: got %s, want %s", what, text, wanted)
	}
}

// kinds returns the kinds and actors of the statements in a tenant's ledger.
func (w *world) kinds(tenant id.Tenant) (kinds []string) {
	w.t.Helper()
	for _, statement := range w.Audit(w.t, tenant) {
		kinds = append(kinds, statement.Kind+" by "+statement.Principal)
	}
	return kinds
}

// endedContext returns a context whose client has disconnected.
func endedContext(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
