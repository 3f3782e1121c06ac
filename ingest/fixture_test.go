package ingest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/agent"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/openapitest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

var traffic = openapitest.Of("ingest")

func TestMain(m *testing.M) {
	os.Exit(traffic.MainOf(func() int { return enginetest.Main(m) }))
}

const (
	eventsPath   = "/v1/ingest/events"
	evaluatePath = "/v1/ingest/policy/evaluate"
)

// member is an organization with an agent and an ingest key.
type member struct {
	tenant id.Tenant
	id     id.Organization
	agent  agent.Credentials
	token  string // of an ingest key with all scopes, for all agents
	keyID  string
}

// world is the ingest surface on real services, with two organizations that use the same names.
type world struct {
	testing.TB
	*ledgertest.Service
	orgs       *org.Orgs
	agents     *agent.Agents
	policies   *policystore.Policies
	approvals  *approval.Approvals
	webhooks   *webhook.Sender
	workflows  *workflow.Workflows
	handler    http.Handler // watched
	fast, slow http.Handler // the router with its fast path and without it
	red, blue  member
}

func newWorld(t testing.TB, change ...func(*ingest.Options)) *world {
	t.Helper()
	return newWorldOn(t, ledgertest.New(t), change...)
}

func newWorldOn(t testing.TB, s *ledgertest.Service, change ...func(*ingest.Options)) *world {
	t.Helper()
	w := &world{TB: t, Service: s}
	w.open(change...)
	w.red = w.member(ledgertest.Red, "red")
	w.blue = w.member(ledgertest.Blue, "blue")
	return w
}

// restart stops the service and starts it on another store with the same anchors.
func (w *world) restart(store *storagetest.Model) {
	w.Helper()
	if err := w.Ledgers.Close(); err != nil {
		w.Fatal(err)
	}
	w.Service = w.Service.Again(w.TB, store)
	w.Store = store
	w.open()
}

// open creates the services and the surface on the store.
func (w *world) open(change ...func(*ingest.Options)) {
	w.Helper()
	t := w.TB
	var err error
	if w.orgs, err = org.New(org.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Agents: anyAgent{}, Clock: w.Clock}); err != nil {
		t.Fatal(err)
	}
	w.SystemEvents.Disclosure = w.orgs.Disclosure
	w.agents = agent.New(agent.Options{Records: w.Engine, Events: w.SystemEvents, Keyring: w.Keyring(), Clock: w.Clock})
	w.policies = policystore.New(policystore.Options{Records: w.Engine, Events: w.SystemEvents, Clock: w.Clock})
	w.webhooks = webhook.New(webhook.Options{Records: w.Engine, Keyring: w.Keyring(), Caller: egress.New(egress.Options{}), Clock: w.Clock})
	w.approvals = approval.New(approval.Options{
		Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.policies, Agents: w.agents,
		Organizations: w.orgs, Members: voters{}, Keyring: w.Keyring(), Clock: w.Clock,
		Webhooks: w.webhooks,
	})
	w.workflows = workflow.New(workflow.Options{
		Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.policies, Agents: w.agents, Organizations: w.orgs, Approvals: w.approvals, Clock: w.Clock,
	})
	o := ingest.Options{
		Edge:    &edge.Edge{Passer: traffic.Passer(), Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))},
		Ledgers: w.Ledgers, Organizations: w.orgs, Agents: w.agents, Policies: w.policies, Approvals: w.approvals, Workflows: w.workflows, Clock: w.Clock, PublicURL: "https://log.test", Keyring: w.Keyring(),
	}
	for _, f := range change {
		f(&o)
	}
	router := o.Edge.Router()
	ingest.New(o).Routes(router)
	w.fast, w.slow = router, router.WithoutFastPath()
	w.handler = traffic.Watch(t, router)
}

// anyAgent allows an ingest key for all agents.
type anyAgent struct{}

func (anyAgent) Exists(context.Context, id.Tenant, id.Agent) (bool, error) { return true, nil }

// member creates an organization.
func (w *world) member(t id.Tenant, slug id.Slug) member {
	w.Helper()
	m := member{tenant: t, id: ledgertest.Organization(t)}
	ctx := context.Background()
	changes, err := w.orgs.FoundOrganization(ctx, org.Founding{Tenant: t, ID: m.id, Slug: slug, Name: string(slug)})
	if err != nil {
		w.Fatal(err)
	}
	agents, credentials, err := w.agents.NewAgent(ctx, t, sysevent.Operator, agent.Wanted{})
	if err != nil {
		w.Fatal(err)
	}
	key, shown, token, err := w.orgs.NewIngestKey(ctx, t, sysevent.Operator, org.WantedKey{Name: "first"})
	if err != nil {
		w.Fatal(err)
	}
	w.Found(w.TB, t, append(append(changes, agents...), key)...)
	m.agent, m.token, m.keyID = credentials, token.Reveal(), shown.ID
	return m
}

// ingestKey creates another ingest key and returns its token.
func (w *world) ingestKey(m *member, wanted org.WantedKey) string {
	w.Helper()
	wanted.Name = "another"
	_, token, err := w.orgs.CreateIngestKey(context.Background(), m.tenant, "acc", wanted)
	if err != nil {
		w.Fatal(err)
	}
	return token.Reveal()
}

// activate activates a policy with these rules.
func (w *world) activate(m *member, policyID, rules string) {
	w.Helper()
	document := `{"policy_id":"` + policyID + `","name":"test","rules":` + rules + `}`
	if _, err := w.policies.Create(context.Background(), m.tenant, "acc", []byte(document)); err != nil {
		w.Fatal(err)
	}
	if _, err := w.policies.Activate(context.Background(), m.tenant, "acc", policyID); err != nil {
		w.Fatal(err)
	}
}

// change changes an organization's settings.
func (w *world) change(m *member, p org.Patch) {
	w.Helper()
	if _, err := w.orgs.Change(context.Background(), m.tenant, sysevent.Operator, p); err != nil {
		w.Fatal(err)
	}
}

// fields are members of an envelope or a question. A nil value removes the member.
type fields map[string]any

// unsigned returns the members of a valid envelope, with changes.
func (w *world) unsigned(m *member, name string, change fields) fields {
	f := fields{
		"schema_version": 1, "event_id": name, "organization_id": m.id.String(), "trace_id": "trace-" + name,
		"agent_id": m.agent.Agent, "key_id": m.agent.Key, "emitted_at": id.InstantOf(w.Clock()).String(),
		"actor_type": "agent", "actor_principal": "svc", "action_kind": "llm_invocation",
		"policy_decision": "allow", "payload": fields{"purpose": "test"},
	}
	maps.Copy(f, change)
	maps.DeleteFunc(f, func(_ string, v any) bool { return v == nil })
	return f
}

// envelope returns a valid envelope, changed before it is signed.
func (w *world) envelope(m *member, name string, change fields) string {
	w.Helper()
	return w.signed(w.unsigned(m, name, change), m.agent.Private)
}

func (w *world) signed(f fields, key edkey.Private) string {
	w.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		w.Fatal(err)
	}
	full, err := event.Sign(text, key)
	if err != nil {
		w.Fatal(err)
	}
	return string(full)
}

// signedCanonical is signed for the canonical form: the JSON itself is the message.
func (w *world) signedCanonical(f fields, key edkey.Private) string {
	w.Helper()
	text, err := jcs.Marshal(f)
	if err != nil {
		w.Fatal(err)
	}
	signature := key.Sign(text)
	return string(text[:len(text)-1]) + `,"sig_alg":"ed25519","sig_value_b64":"` + base64Of(signature[:]) + `"}`
}

// activated returns the policy of a ledger_policy_activated event.
func activated(t *testing.T, envelope []byte) string {
	t.Helper()
	var e struct {
		Payload struct {
			PolicyID string `json:"policy_id"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(envelope, &e); err != nil {
		t.Fatal(err)
	}
	return e.Payload.PolicyID
}

// unchecked returns an envelope whose signature only has the right form, for content that event.Sign rejects.
func (w *world) unchecked(m *member, name string, change fields) string {
	w.Helper()
	f := fields{"sig_alg": "ed25519", "sig_value_b64": base64Of(make([]byte, 64))}
	maps.Copy(f, change)
	text, err := json.Marshal(w.unsigned(m, name, f))
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// answer is a response.
type answer struct {
	*httptest.ResponseRecorder
	fields fields
}

// post sends a body.
func (w *world) post(path, token, body string, headers ...string) answer {
	w.Helper()
	return w.do(http.MethodPost, path, token, body, headers...)
}

// do makes a request. headers are "Name: value" and come after the defaults.
func (w *world) do(method, path, token, body string, headers ...string) answer {
	w.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Content-Type" || name == "Authorization" {
			r.Header.Set(name, value)
		} else {
			r.Header.Add(name, value)
		}
	}
	a := answer{ResponseRecorder: httptest.NewRecorder()}
	w.handler.ServeHTTP(a, r)
	var text any
	if err := json.Unmarshal(a.Body.Bytes(), &text); err != nil {
		w.Errorf("%s %s: body %q: %v", method, path, a.Body, err)
	}
	a.fields, _ = text.(map[string]any) // nil for a list
	return a
}

// send posts an event with the member's first ingest key.
func (w *world) send(m *member, body string, headers ...string) answer {
	return w.post(eventsPath, m.token, body, headers...)
}

// mustCreate sends a valid event and returns the answer.
func (w *world) mustCreate(m *member, name string, change fields, headers ...string) answer {
	w.Helper()
	a := w.send(m, w.envelope(m, name, change), headers...)
	w.expect(a, http.StatusCreated, "")
	return a
}

// expect checks the status and, for a refusal, the message.
func (w *world) expect(a answer, status int, message string) {
	w.Helper()
	got, _ := a.fields["error"].(string)
	if a.Code != status || got != message {
		w.Errorf("got %d %s, want %d %q", a.Code, a.Body, status, message)
	}
}

// expectReplayed checks the whole answer to a replayed event.
func (w *world) expectReplayed(a answer, name string) {
	w.Helper()
	if want := fmt.Sprintf(`{"event_id":%q,"status":"replayed"}`, name); a.Code != http.StatusOK || a.Body.String() != want {
		w.Errorf("got %d %s, want 200 %s", a.Code, a.Body, want)
	}
}

// sizes returns the tree sizes of both organizations.
func (w *world) sizes() [2]id.Index {
	w.Helper()
	return [2]id.Index{w.State(w.TB, w.red.tenant).Size(), w.State(w.TB, w.blue.tenant).Size()}
}

// record returns the record of an organization's latest event.
func (w *world) record(m *member) event.Record {
	w.Helper()
	return w.recordAt(m, w.State(w.TB, m.tenant).Size()-1)
}

// recordAt returns the record of an event of the organization.
func (w *world) recordAt(m *member, at id.Index) event.Record {
	w.Helper()
	e, err := w.Ledgers.Event(context.Background(), w.State(w.TB, m.tenant), at, storage.FieldRecord)
	if err != nil {
		w.Fatal(err)
	}
	r, err := event.ParseRecord(e.Record)
	if err != nil {
		w.Fatal(err)
	}
	return r
}
