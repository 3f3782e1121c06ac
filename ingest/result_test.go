package ingest_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/tenant/agent"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// phased is a payment in a phase of a call. of is the event named as its parent.
func phased(phase, call string, amount any, of string) fields {
	f := payment(amount)
	p := f["payload"].(fields)
	p["phase"], p["call_id"] = phase, call
	if call == "" {
		delete(p, "call_id")
	}
	if of != "" {
		f["parent_event_id"] = of
	}
	return f
}

func but(f fields, change fields) fields {
	f = maps.Clone(f)
	maps.Copy(f, change)
	return f
}

// A limit counts an event whatever it claims to be, unless it is the result of a stored intent. Each row is sent with
// a budget of which the intent has spent 60 of 100.
func TestNobodySlipsPastALimit(t *testing.T) {
	w := newWorld(t)
	payload := func(change fields) fields { return fields{"payload": change} }
	_, other, err := w.agents.CreateAgent(t.Context(), w.red.tenant, "acc", agent.Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name string
		sent fields
		want string // of the record: limits, decision, rule
	}{
		{"another kind", but(payment(50), fields{"action_kind": "made_up"}), "60+50 deny budget"},
		{"a decision", but(payment(50), fields{"action_kind": "policy_decision"}), "60+50 deny budget"},
		{"a span", but(payment(50), fields{"action_kind": "span_start"}), "60+50 deny budget"},
		{"a result by its kind", but(payment(50), fields{"action_kind": "result"}), "60+50 deny budget"},
		{"a result without a parent", phased("result", "c", 50, ""), "60+50 deny budget"},
		{"a parent without a phase", but(payment(50), fields{"parent_event_id": "intent"}), "60+50 deny budget"},
		{"another phase", phased("resulT", "c", 50, "intent"), "60+50 deny budget"},
		{"a phase that is no text", but(payment(50), payload(fields{"phase": []string{"result"}, "amount": 50, "currency": "USD"})), "60+50 deny budget"},
		{"an intent that is not there", phased("result", "c", 50, "nowhere"), "60+50 deny budget"},
		{"itself", phased("result", "c", 50, "itself"), "60+50 deny budget"},
		{"an intent of another organization", phased("result", "c", 50, "blue-intent"), "60+50 deny budget"},
		{"an intent of another agent", but(phased("result", "c", 50, "other-agent"), nil), "60+50 deny budget"},
		{"an intent of another tool", but(phased("result", "c", 50, "intent"), fields{"tool_name": "bank.send"}), "60+50 deny budget"},
		{"an intent of another call", phased("result", "d", 50, "intent"), "60+50 deny budget"},
		{"a denied intent", phased("result", "c", 50, "denied"), "60+50 deny budget"},
		{"an intent that declares deny", phased("result", "c", 50, "declared"), "60+50 deny budget"},
		{"an event without a tool", phased("result", "c", 50, "no-tool"), "60+50 deny budget"},
		{"a statement of the service", phased("result", "c", 50, "system"), "60+50 deny budget"},
		{"a result of a result", phased("result", "c", 50, "first-result"), "60+50 deny budget"},
		{"a result", phased("result", "c", 50, "intent"), "intent allow default"},
		{"a result without a call", phased("result", "", 50, "intent"), "intent allow default"},
		{"a result without an amount", but(phased("result", "c", 0, "intent"), payload(fields{"phase": "result"})), "intent allow default"},
		{"a parent in the payload", but(payment(0), payload(fields{"phase": "result", "parent_event_id": "intent"})), "intent allow default"},
		{"a result that declares more", but(phased("result", "c", 50, "intent"), fields{"policy_decision": "allow_with_obligation"}), "intent allow_with_obligation default"},
		{"a denied result", but(phased("result", "c", 50, "intent"), fields{"policy_decision": "deny"}), "intent deny default"},
		{"the result of an intent without a phase", phased("result", "c", 50, "bare"), "bare allow default"},
	}
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "p", dailyBudget)
	}
	w.mustCreate(&w.blue, "blue-intent", phased("intent", "c", 1, ""))
	w.mustCreate(&w.red, "intent", phased("intent", "c", 60, ""))
	w.mustCreate(&w.red, "bare", payment(0))
	w.mustCreate(&w.red, "denied", phased("intent", "c", 70, ""))
	w.mustCreate(&w.red, "declared", but(phased("intent", "c", 1, ""), fields{"policy_decision": "deny"}))
	w.mustCreate(&w.red, "no-tool", but(phased("intent", "c", 1, ""), fields{"tool_name": nil}))
	w.mustCreate(&w.red, "first-result", phased("result", "c", 1, "intent"))
	name := "other-agent"
	full := w.signed(w.unsigned(&w.red, name, but(phased("intent", "c", 0, ""), fields{"agent_id": other.Agent, "key_id": other.Key})), other.Private)
	w.expect(w.send(&w.red, full), http.StatusCreated, "")
	system := w.systemEvent(&w.red)
	for _, row := range rows {
		name := strings.ReplaceAll(row.name, " ", "-")
		if row.sent["parent_event_id"] == "itself" {
			row.sent["parent_event_id"] = name
		}
		if row.sent["parent_event_id"] == "system" {
			row.sent["parent_event_id"] = system
		}
		w.mustCreate(&w.red, name, row.sent)
		r := w.record(&w.red)
		if got := decided(r); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
	if got := w.asks(&w.red, 40); got != "allow default" {
		t.Errorf("what is left: got %s", got)
	}
	if got := w.asks(&w.red, 41); got != "deny budget" {
		t.Errorf("beyond what is left: got %s", got)
	}
	if got := w.asks(&w.blue, 99); got != "allow default" {
		t.Errorf("the neighbour: got %s", got)
	}
	w.Audit(t, w.red.tenant)
}

// decided returns the limits of a record, or its intent, and the decision.
func decided(r event.Record) string {
	by := string(r.Policy.Intent)
	if by == "" {
		var before, added string
		fmt.Sscanf(strings.NewReplacer(`"`, " ", ",", " ").Replace(string(r.Policy.Limits)), "[{ added : %s  before : %s", &added, &before)
		by = before + "+" + added
	}
	return by + " " + r.Policy.Effective.String() + " " + r.Policy.RuleID
}

// stored is an event as stored in a ledger.
type stored struct {
	index    id.Index
	record   event.Record
	envelope *event.Envelope
}

func (k stored) documents() simulate.Documents {
	return simulate.Documents{Record: &k.record, Envelope: k.envelope}
}

// stored returns the events of an organization by their IDs.
func (w *world) stored(m *member) map[string]stored {
	w.Helper()
	all := make(map[string]stored)
	s := w.State(w.TB, m.tenant)
	for e, err := range w.Ledgers.Events(context.Background(), s, 0, s.Size(), storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			w.Fatal(err)
		}
		r, err := event.ParseRecord(e.Record)
		if err != nil {
			w.Fatal(err)
		}
		envelope, err := event.Parse(e.Envelope, event.Options{Server: true})
		if err != nil {
			w.Fatal(err)
		}
		all[string(e.ID)] = stored{e.Index, r, envelope}
	}
	return all
}

// systemEvent returns the name of a statement of the service.
func (w *world) systemEvent(m *member) string {
	w.Helper()
	disclosure := id.DiscloseFull
	w.change(m, org.Patch{Disclosure: &disclosure})
	return string(w.record(m).EventID)
}

// The record of a result repeats what decided on the intent, whatever is active now, and contains no evaluation: the
// result was not judged.
func TestRecordOfAResult(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "ask", `[{"rule_id":"people","tool":"bank.**","decision":"allow_with_obligation","reason":"look"}]`)
	w.mustCreate(&w.red, "intent", phased("intent", "c", 1, ""))
	intent := w.record(&w.red)
	w.activate(&w.red, "no", `[{"rule_id":"never","tool":"**","decision":"deny"}]`)
	a := w.mustCreate(&w.red, "result", phased("result", "c", 1, "intent"))
	r := w.record(&w.red)
	want := event.Policy{
		Declared: id.Allow, Effective: id.AllowWithObligation, Intent: "intent",
		PolicyID: "ask", PolicyVersion: 1, PolicyDigest: intent.Policy.PolicyDigest, RuleID: "people", Engine: "rules",
	}
	if !r.Policy.Same(&want) || !r.FollowsFrom(&intent) {
		t.Errorf("got %+v, want %+v", r.Policy, want)
	}
	if got := [3]any{a.fields["policy_decision"], a.fields["policy_id"], a.fields["rule_id"]}; got != [3]any{"allow_with_obligation", "ask", "people"} {
		t.Errorf("answer: got %v", got)
	}
	if strings.Contains(string(intent.Text()), "intent\":") {
		t.Errorf("the intent's record has a further member: %s", intent.Text())
	}
	w.mustCreate(&w.red, "late", phased("result", "c", 1, "nowhere"))
	if r := w.record(&w.red); r.Policy.RuleID != "never" || r.Policy.Intent != "" || r.Policy.Effective != id.Deny {
		t.Errorf("another one: got %+v", r.Policy)
	}
	events := w.stored(&w.red)
	differences := simulate.ReplayResult(events["result"].documents(), events["intent"].documents())
	if len(differences) != 0 {
		t.Errorf("replay: got %v", differences)
	}
	if differences = simulate.ReplayResult(events["late"].documents(), events["intent"].documents()); len(differences) == 0 {
		t.Error("replay of another one: got no difference")
	}
	w.Audit(t, w.red.tenant)
}

// Results in a batch follow the lines of their intents, in every order, as if each line was sent alone.
func TestResultsInABatch(t *testing.T) {
	w := newWorld(t)
	rules := strings.Replace(dailyBudget, `"max":100`, `"max":3`, 1)
	w.activate(&w.red, "p", rules)
	var lines []string
	want := map[string]string{}
	for i := range 300 { // more than a portion
		intent, result := fmt.Sprint("i", i), fmt.Sprint("r", i)
		lines = append(lines, w.envelope(&w.red, intent, phased("intent", intent, 1, "")), w.envelope(&w.red, result, phased("result", intent, 1, intent)))
		if want[intent], want[result] = fmt.Sprintf("%d+1 allow default", i), intent+" allow default"; i >= 3 {
			want[intent], want[result] = "3+1 deny budget", "3+1 deny budget"
		}
	}
	lines = append(lines, w.envelope(&w.red, "early", phased("result", "x", 1, "late")), w.envelope(&w.red, "late", phased("intent", "x", 0, "")))
	want["early"], want["late"] = "3+1 deny budget", "3+0 allow default"
	if got := w.batch(&w.red, ndjson(lines...)).statuses(); got[http.StatusCreated] != len(lines) {
		t.Fatalf("got %v", got)
	}
	last, events := id.Index(0), w.stored(&w.red)
	for _, line := range lines {
		_, name, _ := strings.Cut(line, `"event_id":"`)
		name, _, _ = strings.Cut(name, `"`)
		e := events[name]
		if got := decided(e.record); got != want[name] {
			t.Errorf("%s: got %s, want %s", name, got, want[name])
		}
		if e.index <= last && name != "i0" {
			t.Fatalf("%s lies at %d, behind %d", name, e.index, last)
		}
		last = e.index
	}
	w.Audit(t, w.red.tenant)
}

// Intents and results of many concurrent calls: a result counts as one only after its stored intent, and only intents
// count.
func TestResultsUnderConcurrency(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "p", strings.Replace(dailyBudget, `"max":100`, `"max":20`, 1))
	var group sync.WaitGroup
	for i := range 60 {
		intent := fmt.Sprint("i", i)
		group.Go(func() {
			w.expect(w.send(&w.red, w.envelope(&w.red, intent, phased("intent", intent, 1, ""))), http.StatusCreated, "")
		})
		group.Go(func() {
			w.expect(w.send(&w.red, w.envelope(&w.red, "r"+intent, phased("result", intent, 1, intent))), http.StatusCreated, "")
		})
	}
	group.Wait()
	allowed := 0
	events := w.stored(&w.red)
	for name, e := range events {
		switch p := &e.record.Policy; {
		case p.Intent != "":
			intent := events[string(p.Intent)]
			if !e.record.FollowsFrom(&intent.record) {
				t.Errorf("%s does not follow from its intent: %+v", name, p)
			}
		case p.Evaluated && p.Effective == id.Allow:
			allowed++
		}
	}
	if allowed != 20 {
		t.Errorf("got %d allowed that count, want 20", allowed)
	}
	w.Audit(t, w.red.tenant)
}

// An evaluation shows limits for an action of every kind.
func TestEvaluateShowsLimitsForEveryKind(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "p", dailyBudget)
	w.mustCreate(&w.red, "spent", payment(100))
	for _, kind := range []string{"tool_call", "made_up", "result"} {
		q := fmt.Sprintf(`{"organization_id":%q,"agent_id":%q,"tool_name":"bank.pay","action_kind":%q,"payload":{"amount":1,"currency":"USD","phase":"result","parent_event_id":"spent"}}`,
			w.red.id, w.red.agent.Agent, kind)
		a := w.post(evaluatePath, w.red.token, q)
		if a.fields["decision"] != "deny" || a.fields["rule_id"] != "budget" {
			t.Errorf("%s: got %s", kind, a.Body)
		}
	}
}

// The cached intents of a process match the store.
func TestResultsAfterARestart(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "p", dailyBudget)
	w.mustCreate(&w.red, "intent", phased("intent", "c", 60, ""))
	w.open() // another surface on the same ledgers
	for name, want := range map[string]string{"c": "intent allow default", "d": "60+60 deny budget"} {
		w.mustCreate(&w.red, "result-"+name, phased("result", name, 60, "intent"))
		if got := decided(w.record(&w.red)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
