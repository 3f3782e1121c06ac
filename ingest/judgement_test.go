package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

const rules = `[
	{"rule_id":"no","tool":"acme.deny","decision":"deny"},
	{"rule_id":"ask","tool":"acme.ask","decision":"allow_with_obligation","reason":"ask \"first\"","obligations":[{"type":"human_approval","approvals":2}]},
	{"rule_id":"yes","tool":"acme.allow","decision":"allow"}
]`

func TestPolicyTightens(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	for _, c := range []struct {
		declared, tool, effective, rule string
	}{
		{"allow", "acme.allow", "allow", "yes"},
		{"allow", "acme.ask", "allow_with_obligation", "ask"},
		{"allow", "acme.deny", "deny", "no"},
		{"allow", "acme.other", "allow", "default"},
		{"allow_with_obligation", "acme.allow", "allow_with_obligation", "yes"},
		{"allow_with_obligation", "acme.ask", "allow_with_obligation", "ask"},
		{"allow_with_obligation", "acme.deny", "deny", "no"},
		{"deny", "acme.allow", "deny", "yes"},
		{"deny", "acme.ask", "deny", "ask"},
		{"deny", "acme.deny", "deny", "no"},
	} {
		name := c.declared + ":" + c.tool
		a := w.mustCreate(&w.red, name, fields{"policy_decision": c.declared, "tool_name": c.tool, "action_kind": "tool_call"})
		p := w.record(&w.red).Policy
		if p.Declared.String() != c.declared || p.Effective.String() != c.effective || p.RuleID != c.rule {
			t.Errorf("%s: got %s to %s by %s, want %s by %s", name, p.Declared, p.Effective, p.RuleID, c.effective, c.rule)
		}
		if !p.Evaluated || p.PolicyID != "pol-1" || p.PolicyVersion != 1 || p.Engine != "rules" || p.EvaluatedAt != id.InstantOf(w.Clock()) {
			t.Errorf("%s: got %+v", name, p)
		}
		decision := [3]any{a.fields["policy_decision"], a.fields["policy_id"], a.fields["rule_id"]}
		want := [3]any{}
		if c.effective != c.declared {
			want = [3]any{c.effective, "pol-1", c.rule}
		}
		if decision != want || len(a.fields) != 5 && want == [3]any{} {
			t.Errorf("%s: got %s, want %v told", name, a.Body, want)
		}
		// The other organization has no policy.
		a = w.mustCreate(&w.blue, name, fields{"policy_decision": c.declared, "tool_name": c.tool})
		if len(a.fields) != 5 {
			t.Errorf("%s in the other organization: got %s", name, a.Body)
		}
		if p := w.record(&w.blue).Policy; !p.Evaluated || p.PolicyID != "none" || p.RuleID != "none" || p.PolicyVersion != 0 || p.Effective != p.Declared {
			t.Errorf("%s in the other organization: got %+v", name, p)
		}
	}
	w.Audit(t, w.red.tenant)
}

// An auditor can compute the recorded digest from the envelope.
func TestInputDigest(t *testing.T) {
	w := newWorld(t)
	w.mustCreate(&w.red, "evt", fields{"tool_name": "acme.ask", "payload": fields{"b": 1.0, "a": "é"}})
	want := policy.InputDigest(policy.Input{
		Tool: "acme.ask", Agent: w.red.agent.Agent, ActorType: "agent", ActionKind: "llm_invocation", Payload: []byte(`{"a":"é","b":1}`),
	})
	if got := w.record(&w.red).Policy.InputDigest; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWithoutToolNoPolicyIsAsked(t *testing.T) {
	rules := &brittle{}
	w := newWorld(t, func(o *ingest.Options) { rules.ActiveSource, o.Policies = o.Policies, rules })
	rules.broken.Store(true)
	w.mustCreate(&w.red, "evt", nil)
	if p := w.record(&w.red).Policy; p.Evaluated || p.Effective != id.Allow {
		t.Errorf("got %+v", p)
	}
	w.expect(w.send(&w.red, w.envelope(&w.red, "tool", fields{"tool_name": "acme.allow"})), 503, "The policy can't be read")
}

func TestCanonicalFormIsRecorded(t *testing.T) {
	w := newWorld(t)
	f := w.unsigned(&w.red, "evt", nil)
	w.expect(w.send(&w.red, w.signedCanonical(f, w.red.agent.Private)), 201, "")
	if got := w.record(&w.red).SigForm; got != "canonical" {
		t.Errorf("got sig_form %s, want canonical", got)
	}
}

func TestDisclosureIsThatOfTheMoment(t *testing.T) {
	w := newWorld(t)
	for _, d := range []id.Disclosure{id.DiscloseFull, id.DiscloseCommitment, id.DiscloseRecord} {
		w.change(&w.red, org.Patch{Disclosure: &d})
		w.mustCreate(&w.red, d.String(), nil)
		s := w.State(t, w.red.tenant)
		if e, err := w.Ledgers.Event(t.Context(), s, s.Size()-1, storage.FieldRecord); err != nil || e.Disclosure != d {
			t.Errorf("got %s, %v; want %s", e.Disclosure, err, d)
		}
	}
}

func TestScopesAndAgents(t *testing.T) {
	w := newWorld(t)
	m := &w.red
	body := w.envelope(m, "evt", nil)
	question := w.question(m, nil)
	evaluate := w.ingestKey(m, org.WantedKey{Scopes: mustScopes(t, "evaluate", "approvals")})
	events := w.ingestKey(m, org.WantedKey{Scopes: mustScopes(t, "events", "workflows")})
	narrow := w.ingestKey(m, org.WantedKey{Agents: []id.Agent{"somebody.else"}})
	right := w.ingestKey(m, org.WantedKey{Agents: []id.Agent{"somebody.else", m.agent.Agent}})
	before := w.sizes()
	w.expect(w.post(eventsPath, evaluate, body), 403, "The ingest key does not have the scope events")
	w.expect(w.post(evaluatePath, events, question), 403, "The ingest key does not have the scope evaluate")
	w.expect(w.post(eventsPath, narrow, body), 403, "The ingest key is not for this agent")
	w.expect(w.post(evaluatePath, narrow, question), 403, "The ingest key is not for this agent")
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
	w.expect(w.post(evaluatePath, evaluate, question), 200, "")
	w.expect(w.post(evaluatePath, right, question), 200, "")
	w.expect(w.post(eventsPath, right, body), 201, "")
	w.expectReplayed(w.post(eventsPath, events, body), "evt")
}

// The cap is exact under concurrency, is distinguishable from rate limits, and applies to the calendar month.
func TestCap(t *testing.T) {
	const limit, sent = 5, 20
	w := newWorld(t)
	cap := new(uint64)
	*cap = limit
	w.change(&w.red, org.Patch{EventsPerMonth: &cap})
	var bodies []string
	for i := range sent {
		bodies = append(bodies, w.envelope(&w.red, fmt.Sprint("evt-", i), nil))
	}
	before := w.sizes()
	if got := w.together(&w.red, bodies); got[201] != limit || got[429] != sent-limit {
		t.Errorf("got %v, want %d times 201 and %d times 429", got, limit, sent-limit)
	}
	before[0] += limit
	if after := w.sizes(); after != before {
		t.Errorf("got sizes %v, want %v", after, before)
	}
	a := w.send(&w.red, w.envelope(&w.red, "one-more", nil))
	if want := `{"error":"Monthly event limit reached","code":"plan_limit"}`; a.Code != 429 || a.Body.String() != want || a.Header().Get("Retry-After") != "" {
		t.Errorf("got %d %s (Retry-After %q), want %s", a.Code, a.Body, a.Header().Get("Retry-After"), want)
	}
	w.mustCreate(&w.blue, "one-more", nil)
	w.Pass(11 * 24 * time.Hour) // from November 20 into December
	w.mustCreate(&w.red, "one-more", nil)
}

// meddling calls a function once, after the nth event of its request is prepared and before it is appended.
type meddling struct {
	ingest.Ledgers
	meddle func()
	nth    int
	once   sync.Once
}

func (m *meddling) AppendTo(ctx context.Context, s *log.State, prepares []log.Prepare) []log.Outcome {
	if m.nth < len(prepares) {
		prepare := prepares[m.nth]
		prepares[m.nth] = func(ctx context.Context, s *log.State) (log.Submission, error) {
			sub, err := prepare(ctx, s)
			m.once.Do(m.meddle)
			return sub, err
		}
	}
	return m.Ledgers.AppendTo(ctx, s, prepares)
}

// If the configuration changes, the event is judged again.
func TestJudgedUnderTheStateItIsAppendedTo(t *testing.T) {
	for name, c := range map[string]struct {
		meddle  func(w *world, m *member)
		status  int
		message string
		check   func(t *testing.T, r event.Record)
	}{
		"key retired":  {func(w *world, m *member) { w.end(m, false) }, 422, "Signing key retired", nil},
		"key revoked":  {func(w *world, m *member) { w.end(m, true) }, 422, "Signing key revoked", nil},
		"organization": {func(w *world, m *member) { inactive := false; w.change(m, org.Patch{Active: &inactive}) }, 403, "The organization is inactive", nil},
		"cap": {func(w *world, m *member) {
			limit := new(uint64)
			*limit = 1
			w.change(m, org.Patch{EventsPerMonth: &limit})
		}, 429, "Monthly event limit reached", nil},
		"policy": {func(w *world, m *member) { w.activate(m, "strict", rules) }, 201, "", func(t *testing.T, r event.Record) {
			if r.Policy.PolicyID != "strict" || r.Policy.Effective != id.Deny {
				t.Errorf("got %+v, want the new policy", r.Policy)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ledgers := &meddling{}
			w := newWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers })
			ledgers.meddle = func() {}
			m := &w.red
			w.mustCreate(m, "first", nil)
			before := w.sizes()
			ledgers.once, ledgers.meddle = sync.Once{}, func() { c.meddle(w, m) }
			body := w.envelope(m, "evt", fields{"tool_name": "acme.deny"})
			w.expect(w.send(m, body), c.status, c.message)
			before[0]++ // the statement
			if c.check != nil {
				before[0]++
				c.check(t, w.record(m))
			}
			if after := w.sizes(); after != before {
				t.Errorf("got sizes %v, want %v", after, before)
			}
		})
	}
}

// The record of every event names the policy that was active at its index, and no event comes after the end of its
// key.
func TestEveryRecordFitsItsPlaceInTheLedger(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	for sender := range 4 {
		group.Go(func() {
			for i := range 20 {
				a := w.send(&w.red, w.envelope(&w.red, fmt.Sprintf("evt-%d-%d", sender, i), fields{"tool_name": "acme.allow"}))
				if message := a.fields["error"]; a.Code != http.StatusCreated && message != "Signing key revoked" {
					t.Errorf("got %d %s", a.Code, a.Body)
				}
			}
		})
	}
	group.Go(func() {
		for i := range 6 {
			w.activate(&w.red, fmt.Sprint("pol-", i), rules)
		}
		w.end(&w.red, true)
	})
	group.Wait()
	active, ended := "none", false
	for e, err := range w.Ledgers.Events(t.Context(), w.State(t, w.red.tenant), 0, 1<<40, storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := event.ParseRecord(e.Record)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.ActionKind == "ledger_policy_activated":
			active = activated(t, e.Envelope)
		case e.ActionKind == "ledger_key_revoked":
			ended = true
		case r.Signer == event.SignerAgent && (ended || r.Policy.PolicyID != active):
			t.Errorf("event %d: judged by %s, want %s; key ended: %v", e.Index, r.Policy.PolicyID, active, ended)
		}
	}
	w.Audit(t, w.red.tenant)
}

// unreadable cannot read which organization an ingest key belongs to.
type unreadable struct{ ingest.Organizations }

func (unreadable) Authenticate(context.Context, string) (*org.Caller, error) {
	return nil, fault.New(fault.Unavailable, "The organization can't be read")
}

func TestUnreadableIngestKeyIsNotAWrongOne(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) { o.Organizations = unreadable{o.Organizations} })
	w.expect(w.send(&w.red, w.envelope(&w.red, "evt", nil)), 503, "The organization can't be read")
	w.expect(w.post(evaluatePath, w.red.token, w.question(&w.red, nil)), 503, "The organization can't be read")
}
