package publicapi_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log/anchor"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/openapitest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

var traffic = openapitest.Of("public")

func TestMain(m *testing.M) { os.Exit(traffic.Main(m)) }

const publicURL = "https://ledger.example:8443"

// owner is one of the two organizations of every test.
type owner struct {
	tenant id.Tenant
	id     id.Organization
	slug   id.Slug
	agent  agent.Credentials
}

func (o *owner) origin() id.Origin { return id.Origin("ledger.example:8443/o/" + o.id.String()) }

// world is the surface with real in-memory ledgers and agents.
type world struct {
	policies *policystore.Policies
	testing.TB
	red, blue owner

	store      *storagetest.Model
	anchors    string
	keyring    *seal.Keyring
	ledgers    *log.Ledgers
	surface    *publicapi.Server
	read       publicapi.Ledgers // by the surface; nil: ledgers
	events     *sysevent.Appender
	orgs       *org.Orgs
	agents     *agent.Agents
	handler    http.Handler // watched
	fast, slow http.Handler // the router with its fast path and without it
	now        time.Time

	directory *publicapi.Directory // nil for none; blue's log unless a test says so
	witnesses publicapi.Witnesses  // nil for none
	lists     publicapi.LogList    // nil for none; one of no log unless a test says so

	documentBytes int64 // room for DID documents; 0: as much as by default
}

func newWorld(t testing.TB) *world {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		TB: t, store: storagetest.NewModel(), keyring: keyring,
		red:       owner{tenant: 11, id: id.Organization{0: 0xab, 15: 1}, slug: "red"},
		blue:      owner{tenant: 12, id: id.Organization{15: 2}, slug: "blue"},
		now:       time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		directory: &publicapi.Directory{Slug: "blue", Tenant: 12, Listings: unlisted{}},
		lists:     noLogs(),
	}
	w.open(t.TempDir())
	w.found(&w.red)
	w.found(&w.blue)
	return w
}

// open starts everything on the store. A new folder of anchors is empty.
func (w *world) open(anchorDir string) {
	w.Helper()
	w.anchors = anchorDir
	anchors, err := anchor.Open(anchorDir)
	if err != nil {
		w.Fatal(err)
	}
	ledgers, err := log.Open(context.Background(), log.Options{Store: w.store, Keyring: w.keyring, Anchors: anchors, Clock: w.clock})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { ledgers.Close() })
	w.ledgers = ledgers
	w.events = &sysevent.Appender{Ledgers: ledgers, Records: w.store, Keyring: w.keyring, Clock: w.clock,
		Disclosure: func(ctx context.Context, s *log.State) (id.Disclosure, error) { return w.orgs.Disclosure(ctx, s) }}
	if w.orgs, err = org.New(org.Options{Records: w.store, Events: w.events, Ledgers: ledgers, Clock: w.clock}); err != nil {
		w.Fatal(err)
	}
	w.policies = policystore.New(policystore.Options{Records: w.store, Events: w.events, Settings: w.orgs, Clock: w.clock})
	w.agents = agent.New(agent.Options{Records: w.store, Events: w.events, Clock: w.clock})
	w.serve(w.agents)
}

// serve starts the surface with a source of agents.
func (w *world) serve(agents publicapi.Agents) {
	edge := &edge.Edge{Passer: traffic.Passer(), Logger: slog.New(slog.NewTextHandler(w.Output(), nil))}
	router := edge.Router()
	ledgers := w.read
	if ledgers == nil {
		ledgers = w.ledgers
	}
	w.surface = publicapi.New(publicapi.Options{
		Edge: edge, Ledgers: ledgers, Organizations: w.orgs, Agents: agents, GrantKeys: grantKeys{}, PublicURL: publicURL, Clock: w.clock,
		Directory: w.directory,
		Witnesses: w.witnesses, LogList: w.lists,
		DIDBytes: w.documentBytes, Policies: w.policies,
	})
	w.surface.Routes(router, nil)
	w.fast, w.slow = router, router.WithoutFastPath()
	w.handler = traffic.Watch(w.TB, router)
}

func (w *world) clock() time.Time { return w.now }

// found creates an organization with an agent. Its setting discloses new events fully, so that tests show where less is
// disclosed regardless.
func (w *world) found(o *owner) {
	w.Helper()
	settings, err := w.orgs.FoundOrganization(context.Background(), org.Founding{Tenant: o.tenant, ID: o.id, Slug: o.slug, Name: "test", Disclosure: id.DiscloseFull})
	if err != nil {
		w.Fatal(err)
	}
	system, err := sysevent.NewSystemKey(w.keyring, o.id)
	if err != nil {
		w.Fatal(err)
	}
	changes, credentials, err := w.agents.NewAgent(context.Background(), o.tenant, sysevent.Operator, agent.Wanted{ID: id.Agent("helper-" + string(o.slug))})
	if err != nil {
		w.Fatal(err)
	}
	o.agent = credentials
	genesis := log.Genesis{Organization: o.id, Origin: o.origin(), Changes: append(append(changes, settings...), system)}
	if _, err := w.ledgers.Create(context.Background(), o.tenant, genesis); err != nil {
		w.Fatal(err)
	}
}

// envelope signs an event of an organization's agent.
func (w *world) envelope(o *owner, name string) *event.Envelope {
	w.Helper()
	unsigned, err := json.Marshal(map[string]any{
		"schema_version": 1, "event_id": name, "organization_id": o.id.String(), "trace_id": "trc",
		"agent_id": o.agent.Agent, "key_id": o.agent.Key, "emitted_at": "2026-11-20T12:00:00.000Z",
		"actor_type": "agent", "actor_principal": "svc", "action_kind": "llm_invocation",
		"policy_decision": "allow", "payload": map[string]any{"secret": name},
	})
	if err != nil {
		w.Fatal(err)
	}
	signed, err := event.Sign(unsigned, o.agent.Private)
	if err != nil {
		w.Fatal(err)
	}
	e, err := event.Parse(signed, event.Options{})
	if err != nil {
		w.Fatal(err)
	}
	return e
}

// append stores events with a disclosure, in order.
func (w *world) append(o *owner, disclosure id.Disclosure, names ...string) []log.Receipt {
	w.Helper()
	receipts, err := w.ledgers.Append(context.Background(), o.tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return w.submission(s, o, disclosure, names...), nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return receipts
}

func (w *world) submission(s *log.State, o *owner, disclosure id.Disclosure, names ...string) (sub log.Submission) {
	for _, name := range names {
		sub.Drafts = append(sub.Drafts, log.NewDraft(s.Identity(), w.envelope(o, name), log.Attestation{
			Form: event.FormDigest, PublicKey: did.Multikey(o.agent.Private.Public().Bytes()), Signer: event.SignerAgent, Custody: event.CustodyServer,
			IngestKeyID: "ik", Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}, Disclosure: disclosure,
		}))
	}
	return sub
}

// rekey changes the log keys with one event.
func (w *world) rekey(o *owner, name string, change func(context.Context, *log.State) (*log.KeyChange, error)) {
	w.Helper()
	_, err := w.ledgers.Append(context.Background(), o.tenant, func(ctx context.Context, s *log.State) (log.Submission, error) {
		c, err := change(ctx, s)
		sub := w.submission(s, o, id.DiscloseRecord, name)
		sub.Keys = c
		return sub, err
	})
	if err != nil {
		w.Fatal(err)
	}
}

// names returns n event IDs.
func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// state returns the published state of an organization.
func (w *world) state(o *owner) *log.State {
	w.Helper()
	s, err := w.ledgers.State(context.Background(), o.tenant)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// do sends a request with headers of the form "Name: value". Before a GET it sends a HEAD, because both must get the
// same response.
func (w *world) do(method, target string, headers ...string) *httptest.ResponseRecorder {
	if method == http.MethodGet {
		w.ask(http.MethodHead, target, headers...)
	}
	return w.ask(method, target, headers...)
}

func (w *world) ask(method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// get expects 200 and checks the headers of every response.
func (w *world) get(target string, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	answer := w.do(http.MethodGet, target, headers...)
	if answer.Code != http.StatusOK {
		w.Fatalf("GET %s: got %d %s", target, answer.Code, answer.Body)
	}
	w.public(target, answer)
	return answer
}

// refused expects an error with exactly the given body.
func (w *world) refused(target string, status int, body string) {
	w.Helper()
	answer := w.do(http.MethodGet, target)
	if answer.Code != status || answer.Body.String() != body {
		w.Errorf("GET %s: got %d %s, want %d %s", target, answer.Code, answer.Body, status, body)
	}
	if got := answer.Header().Get("Cache-Control"); got != "no-store" {
		w.Errorf("GET %s: got Cache-Control %q, want no-store", target, got)
	}
	w.public(target, answer)
}

const notFound = `{"error":"Not found"}`

func (w *world) missing(target string) {
	w.Helper()
	w.refused(target, http.StatusNotFound, notFound)
}

func (w *world) invalid(target, message string) {
	w.Helper()
	w.refused(target, http.StatusUnprocessableEntity, `{"error":"`+message+`"}`)
}

// public checks the headers of every response.
func (w *world) public(target string, answer *httptest.ResponseRecorder) {
	w.Helper()
	for name, want := range map[string]string{"Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff"} {
		if got := answer.Header().Get(name); got != want {
			w.Errorf("%s: got %s %q, want %q", target, name, got, want)
		}
	}
}

// read decodes the response to a GET.
func read[T any](w *world, target string, headers ...string) (v T) {
	w.Helper()
	answer := w.get(target, headers...)
	if err := json.Unmarshal(answer.Body.Bytes(), &v); err != nil {
		w.Fatalf("GET %s: %v", target, err)
	}
	return v
}

// register registers another key of an agent and returns it.
func (w *world) register(o *owner) agent.Key {
	w.Helper()
	return w.registerPrivate(o, edkey.NewPrivate())
}

func (w *world) registerPrivate(o *owner, private edkey.Private) agent.Key {
	w.Helper()
	signature := private.Sign(agent.ProofMessage(o.id, o.agent.Agent, "", private.Public()))
	key, err := w.agents.RegisterKey(context.Background(), o.tenant, "acc", o.agent.Agent, agent.Registration{
		PublicKey: private.Public().String(), Proof: base64.StdEncoding.EncodeToString(signature[:]),
	})
	if err != nil {
		w.Fatal(err)
	}
	return key
}

// grantKeys contains one key of Red, generated when the log had three events.
type grantKeys struct{}

func (grantKeys) GrantKey(_ context.Context, t id.Tenant) (tlog.VerifierKey, id.Index, bool, error) {
	if t != 11 {
		return tlog.VerifierKey{}, 0, false, nil
	}
	private, err := edkey.PrivateFromSeed(make([]byte, edkey.SeedSize))
	if err != nil {
		return tlog.VerifierKey{}, 0, false, err
	}
	key, err := tlog.NewVerifierKey("ledger.example:8443/o/red/grant", private.Public())
	return key, 3, true, err
}

// unlisted is an empty directory.
type unlisted struct{}

func (unlisted) Listed(context.Context, id.Origin) (id.Event, id.Index, error) {
	return "", 0, fault.New(fault.NotFound, "Not found")
}
