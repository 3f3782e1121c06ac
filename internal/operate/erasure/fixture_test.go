package erasure_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
	ann  = "acc_ann"
)

// world has two organizations with agents whose refunds need an approval, and endpoints that fail.
type world struct {
	*ledgertest.Service
	t         testing.TB
	orgs      *org.Orgs
	agents    *agent.Agents
	book      *policystore.Policies
	approvals *approval.Approvals
	webhooks  *webhook.Sender
	index     *index.Index
	erasures  *erasure.Erasures
	first     map[id.Tenant]id.Agent
	key       edkey.Private
	archive   *archive // nil: none
}

func newWorld(t testing.TB, s *ledgertest.Service) *world {
	t.Helper()
	w := &world{Service: s, t: t, first: map[id.Tenant]id.Agent{}, key: edkey.NewPrivate()}
	w.open()
	for tenant, slug := range map[id.Tenant]id.Slug{red: "red", blue: "blue"} {
		records, err := w.orgs.FoundOrganization(t.Context(), org.Founding{Tenant: tenant,
			ID: ledgertest.Organization(tenant), Slug: slug, Name: string(slug), Plan: "enterprise"})
		if err != nil {
			t.Fatal(err)
		}
		agents, made, err := w.agents.NewAgent(t.Context(), tenant, sysevent.Operator, agent.Wanted{})
		if err != nil {
			t.Fatal(err)
		}
		w.first[tenant] = made.Agent
		w.Found(t, tenant, append(records, agents...)...)
	}
	return w
}

// furnish gives an organization a policy and endpoints.
func (w *world) furnish(tenant id.Tenant) {
	w.t.Helper()
	w.activate(tenant, "p")
	for _, format := range []webhook.Format{webhook.FormatSlack, webhook.FormatStandard} {
		address, events := "https://hook.example/"+string(format), []string{"approval.*", "event.stored"}
		if _, err := w.webhooks.CreateEndpoint(w.t.Context(), tenant, ann,
			webhook.EndpointPatch{URL: &address, Events: &events, Format: &format}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) activate(tenant id.Tenant, name string) {
	w.t.Helper()
	document := fmt.Appendf(nil, `{"policy_id":"%s","name":"Refunds","rules":[{"rule_id":"refund","tool":"acme.refund",
		"decision":"allow_with_obligation","reason":"money leaves","obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":600}]}]}`, name)
	if _, err := w.book.Create(w.t.Context(), tenant, ann, document); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.book.Activate(w.t.Context(), tenant, ann, name); err != nil {
		w.t.Fatal(err)
	}
}

// open starts again on the stored data.
func (w *world) open() {
	var err error
	w.agents = agent.New(agent.Options{Records: w.Engine, Events: w.SystemEvents, Keyring: w.Keyring(), Clock: w.Clock})
	if w.orgs, err = org.New(org.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Agents: w.agents, Clock: w.Clock}); err != nil {
		w.t.Fatal(err)
	}
	w.SystemEvents.Disclosure = w.orgs.Disclosure
	w.book = policystore.New(policystore.Options{Records: w.Engine, Events: w.SystemEvents, Clock: w.Clock})
	w.webhooks = webhook.New(webhook.Options{Records: w.Engine, Keyring: w.Keyring(), Caller: deaf{}, Events: w.SystemEvents,
		Ledgers: w.Ledgers, PublicURL: "https://ledger.example", Clock: w.Clock})
	w.approvals = approval.New(approval.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.book,
		Agents: w.agents, Organizations: keys{w.orgs}, Members: people{}, Keyring: w.Keyring(), Clock: w.Clock, Webhooks: w.webhooks})
	w.index = index.New(index.Options{Ledgers: w.Ledgers, Store: w.Engine, Clock: w.Clock})
	w.erasures = erasure.New(erasure.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Index: w.index,
		Eraser: &erasure.EnvelopeEraser{Appender: w.SystemEvents, Ledgers: w.Ledgers}, Approvals: w.approvals, Lists: w.approvals,
		Deliveries: w.webhooks, Mails: mail.New(mail.Options{Records: w.Engine, Keyring: w.Keyring(), Clock: w.Clock}), Archive: w.archive, Settings: w.orgs, Clock: w.Clock})
}

// deaf is a receiver that fails every delivery.
type deaf struct{}

func (deaf) CheckURL(string) error { return nil }

func (deaf) Post(context.Context, string, http.Header, []byte) (egress.Answer, error) {
	return egress.Answer{Status: http.StatusInternalServerError}, nil
}

// keys accepts every ingest key.
type keys struct{ *org.Orgs }

func (keys) IngestKey(_ context.Context, _ id.Tenant, key string) (org.IngestKey, error) {
	return org.IngestKey{ID: key, CreatedBy: sysevent.Operator}, nil
}

// people are all approvers.
type people struct{}

func (people) Membership(_ context.Context, t id.Tenant, who account.ID) (account.Membership, error) {
	return account.Membership{Account: who, Tenant: t, Role: account.Approver}, nil
}

func (people) ByID(_ context.Context, who account.ID) (account.Account, error) {
	return account.Account{ID: who, Email: string(who) + "@example.com"}, nil
}

// sent describes an event of an agent. Its text is in the payload.
type sent struct {
	id, agent, trace, principal, tool, text string
}

func (e sent) payload() string { return fmt.Sprintf(`{"text":%q}`, e.text) }

// send appends events.
func (w *world) send(tenant id.Tenant, events ...sent) {
	w.t.Helper()
	_, err := w.Ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		var sub log.Submission
		for _, e := range events {
			signed := w.sign(tenant, e)
			attested := log.Attestation{Form: event.FormDigest, PublicKey: did.Multikey(w.key.Public().Bytes()),
				Signer: event.SignerAgent, Custody: event.CustodyAgent, IngestKeyID: "ik_test",
				Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}, Disclosure: id.DiscloseRecord}
			sub.Drafts = append(sub.Drafts, log.NewDraft(s.Identity(), signed, attested))
		}
		return sub, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) sign(tenant id.Tenant, e sent) *event.Envelope {
	w.t.Helper()
	members := map[string]any{
		"schema_version": 1, "event_id": e.id, "organization_id": ledgertest.Organization(tenant).String(), "trace_id": e.trace,
		"agent_id": e.agent, "key_id": "key_test", "emitted_at": "2026-11-20T12:00:00.000Z", "actor_type": "agent",
		"actor_principal": e.principal, "action_kind": "tool_call", "policy_decision": "allow", "payload": json.RawMessage(e.payload()),
	}
	if issuer := map[string]string{"joe": "https://a.example", "mia@red": "https://b.example"}[e.principal]; issuer != "" {
		members["on_behalf_of"] = map[string]any{"issuer": issuer, "subject": "canary subject"} // the same name at two issuers
	}
	if e.tool != "" {
		members["tool_name"] = e.tool
	}
	unsigned, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	signed, err := event.Sign(unsigned, w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	parsed, err := event.Parse(signed, event.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return parsed
}

// question returns the approval that an event of the first agent requests.
func (w *world) question(tenant id.Tenant, e sent) approval.Question {
	return approval.Question{Agent: w.first[tenant], Tool: "acme.refund", Payload: []byte(e.payload()), Trace: id.Trace(e.trace),
		Principal: e.principal, IngestKeyID: "ik_test"}
}

func (w *world) ask(tenant id.Tenant, q approval.Question) approval.Approval {
	w.t.Helper()
	a, made, err := w.approvals.Ask(w.t.Context(), tenant, q)
	if err != nil || !made {
		w.t.Fatalf("ask for approval: made %v, %v", made, err)
	}
	return a
}

// notify creates the deliveries of events and tries all that are due, without success.
func (w *world) notify() {
	w.t.Helper()
	logger := slog.New(slog.DiscardHandler)
	if err := w.webhooks.SweepEvents(w.t.Context(), logger); err != nil {
		w.t.Fatal(err)
	}
	ended, cancel := context.WithCancel(w.t.Context())
	cancel()
	w.webhooks.Run(ended, logger)
}

// drain performs all due erasures.
func (w *world) drain() {
	w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = w.erasures.Sweep(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) begin(tenant id.Tenant, wanted erasure.Wanted) erasure.Erasure {
	w.t.Helper()
	if wanted.Reason == "" {
		wanted.Reason = erasure.ByRequest
	}
	made, err := w.erasures.Ask(w.t.Context(), tenant, ann, wanted)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

func (w *world) find(tenant id.Tenant, name erasure.ID) erasure.Erasure {
	w.t.Helper()
	found, err := w.erasures.Find(w.t.Context(), tenant, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) patch(tenant id.Tenant, p org.Patch) {
	w.t.Helper()
	p.BeginRetention = w.erasures.BeginRetention
	if _, err := w.orgs.Change(w.t.Context(), tenant, ann, p); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) hold(tenant id.Tenant, on bool) {
	w.t.Helper()
	w.patch(tenant, org.Patch{LegalHold: &on})
}

// events yields the events of an organization with record and envelope.
func (w *world) events(tenant id.Tenant) (all []storage.Event) {
	w.t.Helper()
	s := w.State(w.t, tenant)
	for e, err := range w.Ledgers.Events(w.t.Context(), s, 0, s.Size(), storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// left returns the ids of the agents' events that still have their envelope.
func (w *world) left(tenant id.Tenant) (names []string) {
	w.t.Helper()
	for _, e := range w.events(tenant) {
		if e.Envelope != nil && !strings.HasPrefix(e.ActionKind, "ledger_") {
			names = append(names, string(e.ID))
		}
	}
	return names
}

// places returns where a text occurs in the store: kinds of records and ids of events.
func (w *world) places(tenant id.Tenant, text string) (all []string) {
	w.t.Helper()
	for _, partition := range []id.Tenant{tenant, id.Service} {
		for r, err := range storage.PartitionOf(w.t.Context(), w.Engine, partition) {
			if err != nil {
				w.t.Fatal(err)
			}
			if strings.Contains(r.Key+string(r.Value), text) && !slices.Contains(all, string(r.Kind)) {
				all = append(all, string(r.Kind))
			}
		}
	}
	for _, e := range w.events(tenant) {
		if strings.Contains(string(e.Envelope)+string(e.Record), text) {
			all = append(all, string(e.ID))
		}
	}
	return all
}

func wantText(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func refused(t testing.TB, what string, err error, kind fault.Kind, code string) {
	t.Helper()
	if f := fault.Of(err); err == nil || f.Kind != kind || f.Code != code {
		t.Errorf("%s: got %v, want kind %d %q", what, err, kind, code)
	}
}

// each runs a test on the store in memory and on every engine.
func each(t *testing.T, test func(t *testing.T, open func(testing.TB) storage.Engine)) {
	t.Run("memory", func(t *testing.T) { test(t, func(testing.TB) storage.Engine { return storagetest.NewModel() }) })
	enginetest.Each(t, test)
}
