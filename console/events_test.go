package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify"
)

// sendEvent appends an event of an agent, with additional or overridden members.
func (w *world) sendEvent(tenant id.Tenant, name string, more map[string]any) log.Receipt {
	w.t.Helper()
	return w.sendDecided(tenant, name, more, event.Policy{Declared: id.Allow, Effective: id.Allow})
}

// sendDecided appends an event of an agent, with additional or overridden members, on which the policy decided.
func (w *world) sendDecided(tenant id.Tenant, name string, more map[string]any, decided event.Policy) log.Receipt {
	w.t.Helper()
	key := edkey.NewPrivate()
	if more["key_id"] == w.first[tenant].Key {
		key = w.first[tenant].Private
	}
	members := map[string]any{
		"schema_version": 1, "event_id": name, "trace_id": "trc", "agent_id": "agt_1", "key_id": "k",
		"organization_id": w.State(w.t, tenant).Identity().Organization.String(),
		"emitted_at":      "2026-11-20T12:00:00.000Z", "actor_type": "agent", "actor_principal": "svc", "action_kind": "tool_call",
		"tool_name": "acme.orders.read", "policy_decision": "allow", "payload": map[string]any{"text": "Secret-of-" + name},
	}
	for k, v := range more {
		members[k] = v
	}
	text, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	if text, err = event.Sign(text, key); err != nil {
		w.t.Fatal(err)
	}
	e, err := event.Parse(text, event.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	decided.Declared, decided.Effective = e.Decision, e.Decision.Tighten(decided.Effective)
	receipts, err := w.Ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, log.Attestation{
			Form: event.FormDigest, PublicKey: did.Multikey(key.Public().Bytes()), Signer: event.SignerAgent, Custody: event.CustodyAgent,
			IngestKeyID: "ik", Policy: decided, Disclosure: id.DiscloseRecord,
		})}}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return receipts[0]
}

// secretEvent is an event of red.
func (w *world) secretEvent() id.Event {
	w.sendEvent(red, "evt-secret", map[string]any{"trace_id": "trc-secret"})
	return "evt-secret"
}

// eventIDs returns the IDs of the events in an answer.
func eventIDs(answer map[string]any) (names []string) {
	for _, e := range answer["events"].([]any) {
		names = append(names, e.(map[string]any)["event_id"].(string))
	}
	return names
}

func TestListEvents(t *testing.T) {
	w := newWorld(t)
	w.sendEvent(red, "e1", nil)
	w.Pass(time.Minute)
	w.sendEvent(red, "e2", map[string]any{"policy_decision": "deny", "agent_id": "agt_2", "tool_name": "acme.mail.send", "actor_principal": "Zoë"})
	w.sendEvent(red, "e3", map[string]any{"trace_id": "other", "action_kind": "llm_invocation"})
	w.sendEvent(blue, "b1", nil)
	first := w.State(t, red).Size() - 3
	for query, want := range map[string]string{
		"": "e3 e2 e1",
		"?order=oldest&from=" + fmt.Sprint(first): "e1 e2 e3",
		"?agent_id=agt_2":                         "e2",
		"?tool=acme.orders.read":                  "e3 e1",
		"?tool=acme.*.*":                          "e3 e2 e1",
		"?tool=acme.**&decision=allow":            "e3 e1",
		"?decision=deny":                          "e2",
		"?declared=deny&agent_id=agt_1":           "",
		"?trace_id=other":                         "e3",
		"?principal=Zo%C3%AB":                     "e2",
		"?signer=agent&action_kind=tool_call":     "e2 e1",
		"?from=2026-11-20T12:01:00Z":              "e3 e2",
		"?to=2026-11-20T12:01:00Z&signer=agent":   "e1",
		"?q=SECRET-of-E2":                         "e2",
		"?limit=1":                                "e3",
		"?trace_id=nothing":                       "",
	} {
		answer := w.call(200, "GET", "/events"+query, "")
		got := strings.Join(eventIDs(answer), " ")
		if query == "" || query == "?limit=1" {
			got = got[:len(want)]
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
		if got := answer["indexed_to"].(float64); id.Index(got) != first+3 {
			t.Errorf("%s: got indexed_to %v, want %d", query, got, first+3)
		}
	}
	page := w.call(200, "GET", "/events?limit=2", "")
	if page["next"] != fmt.Sprint(first+1) {
		t.Errorf("got next %v, want %d", page["next"], first+1)
	}
	if got := eventIDs(w.call(200, "GET", "/events?limit=1&after="+page["next"].(string), "")); got[0] != "e1" {
		t.Errorf("next page: got %v", got)
	}
	e := w.call(200, "GET", "/events?agent_id=agt_2", "")["events"].([]any)[0].(map[string]any)
	delete(e, "event_hash")
	equal(t, "an event", e, fmt.Sprintf(`{"log_index":%d,"event_id":"e2","received_at":"2026-11-20T12:01:00.000Z","agent_id":"agt_2",
		"tool_name":"acme.mail.send","action_kind":"tool_call","declared":"deny","effective":"deny","policy_id":null,"policy_version":null,"policy_digest":null,"rule_id":null,"signer":"agent","act":null,
		"trace_id":"trc","actor_principal":"Zoë"}`, first+1))
}

// A member who may not read payloads finds nothing by their text.
func TestSearchFindsOnlyWhatTheRoleMayRead(t *testing.T) {
	w := newWorld(t)
	w.sendEvent(red, "e1", nil)
	for _, role := range account.Roles() {
		want := 0
		if role.May(account.ReadPayloads) {
			want = 1
		}
		got := eventIDs(w.call(200, "GET", "/events?q=secret-of", "", as("red-"+string(role))))
		if len(got) != want {
			t.Errorf("%s: got %v, want %d", role, got, want)
		}
		if got := eventIDs(w.call(200, "GET", "/events?q="+url.QueryEscape(`"event_id":"e1"`), "", as("red-"+string(role)))); len(got) != 1 {
			t.Errorf("%s, text of the record: got %v", role, got)
		}
	}
}

func TestListEventsRefuses(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("a", 257)
	for query, want := range map[string]string{
		"?limit=0":                              "limit must be from 1 to 1000",
		"?after=x":                              "after must be a log index, such as next of the page before",
		"?after=-1":                             "after must be a log index, such as next of the page before",
		"?order=up":                             "order must be newest or oldest",
		"?tool=a..b":                            "tool must be a tool name or a pattern of a policy",
		"?signer=me":                            "signer must be agent, bridge or system",
		"?decision=maybe":                       "decision must be allow, deny or allow_with_obligation",
		"?declared=maybe":                       "declared must be allow, deny or allow_with_obligation",
		"?format=csv&wait=1":                    "wait is for format=json",
		"?from=yesterday":                       "from must be a UTC time like 2026-01-31T12:00:00Z, or a log index",
		"?to=2026-02-30T00:00:00Z":              "to must be a UTC time like 2026-01-31T12:00:00Z, or a log index",
		"?q=" + long:                            "q must have at most 256 bytes",
		"?principal=" + strings.Repeat(long, 4): "A parameter is longer than 1024 bytes",
		"?wait=31&order=oldest":                 "wait must be a whole number of seconds from 0 to 30",
		"?wait=1":                               "wait needs order=oldest or q",
	} {
		w.refuses(query, w.request("GET", "/events"+query, ""), 422, want)
	}
	for _, path := range []string{"/events", "/events/e", "/acts", "/acts/e", "/traces", "/traces/t", "/stats"} {
		w.refuses(path+" without an organization", w.request("GET", path, "", as("no-organization")), 403, "Your role does not allow this")
	}
	w.refuses("limit", w.request("GET", "/traces/t?limit=0", ""), 422, "limit must be from 1 to 1000")
	w.refuses("by", w.request("GET", "/stats?by=agent,moon", ""), 422, "by must be of outcome, agent, tool, decision, declared, rule, approver, hour and day")
	w.refuses("from", w.request("GET", "/stats?from=x", ""), 422, "from must be a UTC time like 2026-01-31T12:00:00Z, or a log index")
	w.refuses("to", w.request("GET", "/stats?to=x", ""), 422, "to must be a UTC time like 2026-01-31T12:00:00Z, or a log index")
}

// Which roles see which envelopes.
func TestEnvelopesByRole(t *testing.T) {
	w := newWorld(t)
	w.sendEvent(red, "e1", nil)
	w.ask(red)
	approval := w.call(200, "GET", "/events?action_kind=ledger_approval", "")["events"].([]any)[0].(map[string]any)["event_id"].(string)
	for _, role := range account.Roles() {
		for name, want := range map[string]bool{
			"e1":     role == account.Owner || role == account.Admin || role == account.Auditor,
			approval: role == account.Owner || role == account.Admin || role == account.Auditor || role == account.Approver,
		} {
			answer := w.call(200, "GET", "/events/"+name, "", as("red-"+string(role)))
			bundle := answer["bundle"].(map[string]any)
			if _, got := answer["envelope"]; got != want {
				t.Errorf("%s of %s: got envelope %v, want %v", name, role, got, want)
			}
			if _, got := bundle["envelope"]; got != (want && name == "e1") {
				t.Errorf("%s of %s: got envelope in the bundle %v", name, role, got)
			}
			if report := bundle["verification"].(map[string]any); report["ok"] != true {
				t.Errorf("%s of %s: got %v", name, role, report)
			}
		}
	}
}

// An event is found by its ID, index and hash, and its bundle verifies offline.
func TestAnswerEvent(t *testing.T) {
	w := newWorld(t)
	w.sendEvent(red, "e0", nil)
	r := w.sendEvent(red, "e1", nil)
	w.sendEvent(red, "other", map[string]any{"trace_id": "other"})
	w.sendEvent(red, "e2", nil)
	for _, name := range []string{"e1", fmt.Sprint(r.Index), r.EventHash.String()} {
		answer := w.call(200, "GET", "/events/"+name, "")
		if answer["event_id"] != "e1" || answer["event_hash"] != r.EventHash.String() {
			t.Errorf("%s: got %v", name, answer)
		}
		before, after := answer["before_in_trace"].(map[string]any), answer["after_in_trace"].(map[string]any)
		if before["event_id"] != "e0" || after["event_id"] != "e2" {
			t.Errorf("%s: got %v and %v", name, before, after)
		}
		text, err := json.Marshal(answer["bundle"])
		if err != nil {
			t.Fatal(err)
		}
		b, err := verify.ParseBundle(text)
		if err != nil {
			t.Fatal(err)
		}
		key := w.State(t, red).VerifierKey()
		if report := verify.Check(b, verify.Options{Key: &key}); !report.OK || report.EnvelopeOK == nil {
			t.Errorf("%s: got %v", name, report.Errors)
		}
	}
	if answer := w.call(200, "GET", "/events/other", ""); answer["before_in_trace"] != nil || answer["after_in_trace"] != nil {
		t.Errorf("got %v", answer)
	}
	for _, name := range []string{"none", "99999", id.Hash{}.String(), "%20", strings.Repeat("9", 30)} {
		w.refuses(name, w.request("GET", "/events/"+name, ""), 404, "Not found")
	}
	w.refuses("e1 of another organization", w.request("GET", "/events/e1", "", as("blue-owner")), 404, "Not found")
	w.refuses("its hash", w.request("GET", "/events/"+r.EventHash.String(), "", as("blue-owner")), 404, "Not found")
}

// A log that does not belong to the organization is not found, even if another organization has it.
func TestUnknownLog(t *testing.T) {
	w := newWorld(t)
	w.sendEvent(red, "a1", map[string]any{"trace_id": "A"})
	for _, log := range []string{"none", string(w.State(t, blue).Identity().Origin)} {
		for _, path := range []string{"/events?", "/events/a1?", "/acts?", "/acts/a1?", "/traces?", "/traces/A?", "/stats?"} {
			answer := w.request("GET", path+"log="+url.QueryEscape(log), "")
			w.refuses(path, answer, 404, "The organization has no such log")
		}
	}
}

func TestTraces(t *testing.T) {
	w := newWorld(t)
	w.sendEvent(red, "a1", map[string]any{"trace_id": "A"})
	w.sendEvent(red, "b1", map[string]any{"trace_id": "B", "payload": map[string]any{"parent_event_id": "a1"}})
	w.Pass(time.Second)
	w.sendEvent(red, "a2", map[string]any{"trace_id": "A", "policy_decision": "deny", "agent_id": "agt_2", "payload": map[string]any{"parent_event_id": "a1"}})
	w.sendEvent(red, "a3", map[string]any{"trace_id": "A", "payload": map[string]any{"parent_event_id": "a3"}})
	w.sendEvent(blue, "c1", map[string]any{"trace_id": "A"})
	answer := w.call(200, "GET", "/traces?signer=agent", "")
	size := w.State(t, red).Size()
	equal(t, "traces", answer, fmt.Sprintf(`{"traces":[
		{"log_index":%d,"trace_id":"A","first_at":"2026-11-20T12:00:00.000Z","last_at":"2026-11-20T12:00:01.000Z","last_log_index":%d,"events":3,"at_least":false,"complete":true,
		 "decisions":{"allow":2,"deny":1},"agents":["agt_1","agt_2"]},
		{"log_index":%d,"trace_id":"B","first_at":"2026-11-20T12:00:00.000Z","last_at":"2026-11-20T12:00:00.000Z","last_log_index":%d,"events":1,"at_least":false,"complete":true,
		 "decisions":{"allow":1},"agents":["agt_1"]}],"next":null,"indexed_to":%d,"predecessor":null}`, size-1, size-1, size-3, size-3, size))
	page := w.call(200, "GET", "/traces?signer=agent&limit=1", "")
	rest := w.call(200, "GET", "/traces?signer=agent&limit=1&after="+page["next"].(string), "")
	if got := rest["traces"].([]any)[0].(map[string]any)["trace_id"]; got != "B" || rest["next"] != nil {
		t.Errorf("second page: got %v", rest)
	}
	var steps []string
	for _, e := range w.call(200, "GET", "/traces/A", "", as("red-member"))["events"].([]any) {
		e := e.(map[string]any)
		steps = append(steps, fmt.Sprint(e["event_id"], " below ", e["parent_event_id"]))
	}
	if got, want := strings.Join(steps, ", "), "a1 below <nil>, a2 below a1, a3 below <nil>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	b := w.call(200, "GET", "/traces/B", "")["events"].([]any)[0].(map[string]any)
	if b["parent_event_id"] != nil { // its parent is in another trace
		t.Errorf("got %v", b)
	}
	w.refuses("unknown", w.request("GET", "/traces/none", ""), 404, "Not found")
	w.refuses("of another organization", w.request("GET", "/traces/B", "", as("blue-owner")), 404, "Not found")
}

// A poll returns when an event arrives, and empty when it times out or its client disconnects.
func TestLiveTail(t *testing.T) {
	w := newWorld(t)
	last := w.sendEvent(red, "e1", nil).Index
	path := fmt.Sprintf("/events?order=oldest&after=%d&wait=", last)
	answered := make(chan got)
	go func() { answered <- w.do(w.request("GET", path+"30", "")) }()
	w.sendEvent(blue, "b1", nil)
	w.sendEvent(red, "e2", nil)
	g := <-answered
	if g.status != 200 || !strings.Contains(g.text, `"event_id":"e2"`) || strings.Contains(g.text, `"event_id":"b1"`) {
		t.Errorf("got %d %s", g.status, g.text)
	}
	if got := eventIDs(w.call(200, "GET", fmt.Sprintf("/events?order=oldest&after=%d&wait=1", last+1), "")); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	r := w.request("GET", fmt.Sprintf("/events?order=oldest&after=%d&wait=30", last+1), "")
	if g := w.do(r.WithContext(endedContext(t))); g.status == http.StatusOK {
		t.Errorf("after the client disconnected: got %d %s", g.status, g.text)
	}
}
