package evidence_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has two organizations with made-up agents and policy.
type world struct {
	*ledgertest.Service
	exporter *evidence.Exporter
	key      edkey.Private
	policy   policy.Policy
	pad      string
	sent     map[id.Tenant][]*event.Envelope
}

func newWorld(t testing.TB) *world { return newWorldOn(t, ledgertest.New(t)) }

func newWorldOn(t testing.TB, s *ledgertest.Service) *world {
	t.Helper()
	w := &world{Service: s, key: edkey.NewPrivate(), sent: map[id.Tenant][]*event.Envelope{}}
	var err error
	w.policy, err = policy.Parse([]byte(`{"policy_id":"pol","version":1,"name":"n","rules":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Found(t, red)
	w.Found(t, blue)
	w.exporter = &evidence.Exporter{Ledgers: s.Ledgers, Witnesses: unwitnessed{}, Transparency: unwitnessed{},
		Agents: w, Policies: w, Approvals: noApprovals{}, Organizations: named{}, People: people{}, Events: s.SystemEvents,
		Index:  index.New(index.Options{Ledgers: s.Ledgers, Store: s.Engine, Clock: s.Clock}),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	return w
}

// onEngines runs a test on the in-memory store and on both engines.
func onEngines(t *testing.T, test func(*testing.T, *world)) {
	t.Run("memory", func(t *testing.T) { test(t, newWorld(t)) })
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		test(t, newWorldOn(t, ledgertest.On(t, open(t))))
	})
}

// unwitnessed has checkpoints without cosignatures.
type unwitnessed struct{}

func (unwitnessed) Covering(_ context.Context, s *log.State, _ id.Index) (tlog.Checkpoint, []byte, error) {
	return s.Shown(), s.Checkpoint(), nil
}

func (unwitnessed) Checkpoint(_ context.Context, s *log.State) ([]byte, error) {
	return s.Checkpoint(), nil
}

func (unwitnessed) PolicyText(_ context.Context, s *log.State) (string, error) {
	return "log " + s.VerifierKey().String() + "\nquorum none\n", nil
}

type noApprovals struct{}

func (noApprovals) Find(context.Context, id.Tenant, approval.ID) (approval.Approval, error) {
	return approval.Approval{}, fault.New(fault.NotFound, "Not found")
}

// people are accounts with names, except for acc_3.
type people struct{}

func (people) ByID(_ context.Context, who account.ID) (account.Account, error) {
	if who == "acc_3" {
		return account.Account{}, fault.New(fault.NotFound, "Not found")
	}
	return account.Account{ID: who, DisplayName: "Name of " + string(who)}, nil
}

type named struct{}

func (named) CurrentSettings(context.Context, id.Tenant) (*org.Settings, error) {
	return &org.Settings{Name: `Acme <script>alert(1)</script> & "Co"`, Slug: "acme"}, nil
}

// nothing states nothing.
type nothing struct{}

func (nothing) Append(context.Context, id.Tenant, string,
	func(context.Context, *log.State) (sysevent.Change, error)) ([]log.Receipt, error) {
	return nil, nil
}

func (w *world) Agent(_ context.Context, _ id.Tenant, a id.Agent) (agent.Agent, error) {
	return agent.Agent{ID: a, DisplayName: "The " + string(a)}, nil
}

func (w *world) ListKeys(_ context.Context, _ id.Tenant, a id.Agent, after id.Key, _ int) ([]agent.Key, error) {
	if after != "" {
		return nil, nil
	}
	return []agent.Key{{Agent: a, ID: "key", Multikey: did.Multikey(w.key.Public().Bytes()), Custody: event.CustodyAgent,
		Status: "active", RegisteredAt: 1_790_000_000_000}}, nil
}

func (w *world) Get(_ context.Context, _ id.Tenant, policyID string, version uint64) (policystore.Version, error) {
	if policyID != "pol" || version != 1 {
		return policystore.Version{}, fault.New(fault.NotFound, "Not found")
	}
	return policystore.Version{PolicyID: policyID, Version: version, Digest: w.policy.Digest(), Document: w.policy.Document()}, nil
}

// tools of the events, in turn; "" for an event without one.
var tools = []id.Tool{"acme.orders.read", "acme.mail.send", "", "acme.orders.write", "acme.payments.card.refund"}

// fill appends n events of two agents.
func (w *world) fill(t testing.TB, tenant id.Tenant, n int) {
	t.Helper()
	for range n {
		i := len(w.sent[tenant])
		name := fmt.Sprintf("e%d-%d", tenant, i)
		secret := "secret-" + name + "."
		if tenant == blue {
			secret = "secret-blue"
		}
		members := map[string]any{
			"schema_version": 1, "event_id": name, "organization_id": ledgertest.Organization(tenant).String(),
			"trace_id": fmt.Sprintf("trc-%d", i%3), "agent_id": fmt.Sprintf("agt_%d", 1+i%2), "key_id": "key",
			"emitted_at": "2026-11-20T12:00:00.000Z", "actor_type": "agent", "actor_principal": "svc",
			"action_kind": "tool_call", "policy_decision": "allow", "payload": map[string]any{"text": secret, "pad": w.pad},
		}
		if tool := tools[i%len(tools)]; tool != "" {
			members["tool_name"] = tool
		}
		if i%4 != 0 {
			members["on_behalf_of"] = map[string]any{"issuer": fmt.Sprintf("https://issuer-%d.example", i%2), "subject": fmt.Sprintf("user-%d", i%3)}
		}
		w.appendEvent(t, tenant, members)
	}
}

func (w *world) appendEvent(t testing.TB, tenant id.Tenant, members map[string]any) {
	t.Helper()
	unsigned, err := jcs.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.SignEnvelope(unsigned, w.key)
	if err != nil {
		t.Fatal(err)
	}
	said := event.Policy{Declared: id.Allow, Effective: id.Allow}
	if e.Tool != "" {
		said = event.Policy{Evaluated: true, Declared: id.Allow, Effective: id.Allow, PolicyID: "pol", PolicyVersion: 1,
			PolicyDigest: w.policy.Digest(), RuleID: "default", Engine: "rules", InputDigest: id.Hash{1}, EvaluatedAt: 1}
	}
	_, err = w.Ledgers.Append(t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, log.Attestation{
			Form: event.FormDigest, PublicKey: did.Multikey(w.key.Public().Bytes()), Signer: event.SignerAgent,
			Custody: event.CustodyAgent, IngestKeyID: "ik", Policy: said, Disclosure: id.DiscloseRecord,
		})}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.sent[tenant] = append(w.sent[tenant], e)
}

// erase erases a range.
func (w *world) erase(t testing.TB, tenant id.Tenant, r id.Range) {
	t.Helper()
	eraser := &erasure.EnvelopeEraser{Appender: w.SystemEvents, Ledgers: w.Ledgers}
	_, err := eraser.Erase(t.Context(), tenant, "acc_1", func(context.Context, *log.State) (erasure.Selection, error) {
		return erasure.Selection{Ranges: []id.Range{r}, Reason: "person_request"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fits is a second implementation of a query's filter.
func fits(filter string, e *event.Envelope) bool {
	for part := range strings.SplitSeq(filter, "&") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "agent_id":
			if string(e.AgentID) != value {
				return false
			}
		case "on_behalf_of":
			if o, err := e.OnBehalfOf(); err != nil || o == nil || o.Subject != value {
				return false
			}
		case "issuer":
			if o, err := e.OnBehalfOf(); err != nil || o == nil || o.Issuer != value {
				return false
			}
		case "trace_id":
			if string(e.TraceID) != value {
				return false
			}
		case "tool":
			prefix := strings.TrimRight(value, "*")
			deep := strings.HasSuffix(value, "**")
			rest, begins := strings.CutPrefix(string(e.Tool), prefix)
			if !begins || !deep && strings.Contains(rest, ".") {
				return false
			}
		}
	}
	return true
}
