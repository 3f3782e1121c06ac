package simulate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has two organizations. Some of their events may have no envelope.
type world struct {
	*ledgertest.Service
	t      testing.TB
	erased map[id.Index]bool
	during func() // called when events are read
	sent   int
	kind   string // of the next events
	key    edkey.Private

	of       string         // on_behalf_of of the next events; "" for none
	standing event.Standing // of it
}

func newWorld(t testing.TB) *world {
	w := &world{Service: ledgertest.New(t), t: t, erased: map[id.Index]bool{}, key: edkey.NewPrivate(), kind: "tool_call"}
	w.Found(t, red)
	w.Found(t, blue)
	return w
}

func (w *world) State(ctx context.Context, t id.Tenant) (*log.State, error) {
	return w.Ledgers.State(ctx, t)
}

func (w *world) Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		if w.during != nil {
			w.during()
		}
		for e, err := range w.Ledgers.Events(ctx, s, begin, end, parts) {
			if w.erased[e.Index] {
				e.Envelope = nil
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func compile(t testing.TB, rules string) (*policy.Compiled, *policy.Policy) {
	t.Helper()
	p, err := policy.Parse([]byte(`{"policy_id":"spending","version":3,"name":"n","rules":` + rules + `}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := policy.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return c, &p
}

// envelope signs an event.
func (w *world) envelope(tenant id.Tenant, tool, payload string, declared id.Decision) *event.Envelope {
	w.t.Helper()
	w.sent++
	members := map[string]any{
		"schema_version": 1, "event_id": fmt.Sprintf("e%d", w.sent), "organization_id": ledgertest.Organization(tenant).String(), "trace_id": "t",
		"agent_id": "agt_1", "key_id": "k", "emitted_at": id.InstantOf(w.Clock()).String(), "actor_type": "agent",
		"actor_principal": "svc", "action_kind": w.kind, "policy_decision": declared.String(), "payload": json.RawMessage(payload),
	}
	if tool != "" {
		members["tool_name"] = tool
	}
	if w.of != "" {
		members["on_behalf_of"] = json.RawMessage(w.of)
	}
	text, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	full, err := event.Sign(text, w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := event.Parse(full, event.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// send appends an event that a policy decided, or none if it is nil.
func (w *world) send(tenant id.Tenant, c *policy.Compiled, tool, payload string, declared id.Decision) (*event.Record, *event.Envelope) {
	w.t.Helper()
	e := w.envelope(tenant, tool, payload, declared)
	decided := event.Policy{Declared: declared, Effective: declared}
	if tool != "" {
		in := policystore.InputOf(e, w.standing, id.InstantOf(w.Clock()))
		evaluation := policy.NoPolicy()
		if c != nil {
			evaluation = c.Evaluate(in)
		}
		var tallies []policy.Tally
		for i := range evaluation.Claims {
			tallies = append(tallies, policy.Tally{LimitID: evaluation.Claims[i].Limit.ID, Added: evaluation.Claims[i].Added})
		}
		o := evaluation.Settle(func(*policy.Claim) bool { return false })
		decided = event.Policy{
			Evaluated: true, Declared: declared, Effective: o.Effective(declared), PolicyID: o.PolicyID, PolicyVersion: o.PolicyVersion,
			PolicyDigest: o.PolicyDigest, RuleID: o.RuleID, Engine: o.Engine, InputDigest: policy.InputDigest(in), EvaluatedAt: in.Now,
			Limits: policy.AppendTallies(nil, tallies),
		}
	}
	return w.append(tenant, e, decided)
}

// result appends the result of an event.
func (w *world) result(tenant id.Tenant, intent *event.Record) {
	w.t.Helper()
	e := w.envelope(tenant, "acme.pay.refund", fmt.Sprintf(`{"parent_event_id":%q,"phase":"result"}`, intent.EventID), id.Allow)
	w.append(tenant, e, intent.Policy.ForResult(intent.EventID, id.Allow))
}

func (w *world) append(tenant id.Tenant, e *event.Envelope, decided event.Policy) (*event.Record, *event.Envelope) {
	w.t.Helper()
	receipts, err := w.Ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, log.Attestation{
			Form: event.FormDigest, PublicKey: did.Multikey(w.key.Public().Bytes()), Signer: event.SignerAgent, Custody: event.CustodyAgent,
			IngestKeyID: "ik", OnBehalfOf: w.standing, Policy: decided, Disclosure: id.DiscloseRecord,
		})}}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	state := w.Service.State(w.t, tenant)
	stored, err := w.Ledgers.Event(w.t.Context(), state, receipts[0].Index, storage.FieldRecord)
	if err != nil {
		w.t.Fatal(err)
	}
	record, err := event.ParseRecord(stored.Record)
	if err != nil {
		w.t.Fatal(err)
	}
	return &record, e
}

func (w *world) newSimulator() *simulate.Simulator {
	return simulate.New(simulate.Options{Ledgers: w, Clock: w.Clock})
}
