package console_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
)

const spendingRules = `[
	{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > 100","reason":"Too much"},
	{"rule_id":"watch","tool":"**","decision":"deny","mode":"shadow"}]`

// For one input: the result of every rule, and intermediate values.
func TestSimulateInput(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/policies", `{"policy_id":"spending","name":"n","rules":`+spendingRules+`}`)
	digest := w.call(200, "GET", "/policies/spending", "")["policy_digest"].(string)
	answer := func(decision, rule, reason, capped, steps string) string {
		return fmt.Sprintf(`{"policy_id":"spending","policy_version":1,"policy_digest":"%s","decision":"%s","rule_id":"%s","reason":"%s","obligations":[],"shadow":["watch"],
			"evaluated_at":"2026-11-20T12:00:00.000Z","input_digest":"*","limits":[],"rules":[
			{"rule_id":"cap","mode":"enforce",%s,"steps":[%s]},{"rule_id":"watch","mode":"shadow","result":"matched","why":null,"steps":[]}]}`, digest, decision, rule, reason, capped, steps)
	}
	for _, tc := range []struct{ payload, want string }{
		{`{"amount":100.5}`, answer("deny", "cap", "Too much", `"result":"matched","why":null`, `{"expression":"payload.amount","value":"100.5"},{"expression":"payload.amount > 100","value":"true"}`)},
		{`{"amount":1}`, answer("allow", "default", "No rule matches; the policy's default is allow.", `"result":"unmatched","why":null`, `{"expression":"payload.amount","value":"1"},{"expression":"payload.amount > 100","value":"false"}`)},
		{`{}`, answer("deny", "cap", "Rule cap could not be evaluated and so says deny: payload.amount is missing.", `"result":"failed","why":"payload.amount is missing"`, ``)},
	} {
		got := w.call(200, "POST", "/policies/spending/simulate", `{"input":{"tool_name":"acme.pay.refund","payload":`+tc.payload+`}}`, as("red-policy_editor"))
		if len(got["input_digest"].(string)) != 64 {
			t.Errorf("got input digest %v", got["input_digest"])
		}
		got["input_digest"] = "*"
		equal(t, tc.payload, got, tc.want)
	}
	if state := w.call(200, "GET", "/policies/spending", "")["state"]; state != "draft" {
		t.Errorf("the policy is %s", state)
	}
}

// For the latest events: which decisions would differ. Events of other organizations do not count.
func TestSimulateEvents(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/policies", `{"policy_id":"spending","name":"n","rules":`+spendingRules+`}`)
	w.call(201, "POST", "/policies", `{"policy_id":"spending","name":"n","rules":`+spendingRules+`}`, as("blue-owner"))
	got := w.call(200, "POST", "/policies/spending/simulate", `{"last":10}`)
	if got["summary"] != "0 of 0 would change" || got["from_sequence"] != 1.0 || got["to_sequence"] != 0.0 {
		t.Errorf("empty: got %v", got)
	}
	w.send(red, "acme.pay.refund", `{"amount":500}`, id.Allow)
	w.send(red, "acme.pay.refund", `{"amount":5}`, id.Allow)
	w.send(red, "acme.pay.refund", `{"amount":600}`, id.Deny)
	w.send(red, "", `{}`, id.Allow)
	got = w.call(200, "POST", "/policies/spending/simulate", `{"last":3}`)
	if got["summary"] != "0 of 2 would change" || got["without_tool"] != 1.0 || got["complete"] != true {
		t.Errorf("the last three: got %v", got)
	}
	got = w.call(200, "POST", "/policies/spending/simulate", `{"last":10000,"version":1}`)
	if got["summary"] != "1 of 3 would change" || fmt.Sprint(got["shadow"]) != "map[watch:3]" || got["tightened"] != 1.0 || got["loosened"] != 0.0 {
		t.Fatalf("all: got %v", got)
	}
	below := w.call(200, "POST", "/policies/spending/simulate", `{"last":2,"to":3}`)
	if below["summary"] != "0 of 2 would change" || below["from_sequence"] != 2.0 || below["to_sequence"] != 3.0 {
		t.Errorf("below an index: got %v", below)
	}
	change := got["changes"].([]any)[0].(map[string]any)
	if change["sequence_num"] != 1.0 || change["tool_name"] != "acme.pay.refund" || change["reason"] != "Too much" {
		t.Errorf("got %v", change)
	}
	if got := w.call(200, "POST", "/policies/spending/simulate", `{"last":10}`, as("blue-owner")); got["evaluated"] != 0.0 {
		t.Errorf("blue: got %v", got)
	}
}

func TestSimulateRefuses(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/policies", `{"policy_id":"spending","name":"n","rules":`+spendingRules+`}`)
	const simulate = "/policies/spending/simulate"
	for body, message := range map[string]string{
		`{}`:                                              "Give either input or last",
		`{"last":1,"input":{}}`:                           "Give either input or last",
		`{"last":0}`:                                      "last must be from 1 to 10000",
		`{"last":10001}`:                                  "last must be from 1 to 10000",
		`{"last":1,"now":null}`:                           "now and limits require input",
		`{"last":1,"to":0}`:                               "to must be a log index from 1",
		`{"input":{},"to":1}`:                             "to requires last",
		`{"last":1,"version":0}`:                          "version must be a whole number from 1",
		`{"input":{}}`:                                    "input.tool_name must be a tool name, segments with dots between them",
		`{"input":{"tool":"x"}}`:                          "input.tool is not a member that this server knows",
		`{"input":{"tool_name":""}}`:                      "input.tool_name must be a tool name, segments with dots between them",
		`{"input":{"tool_name":"a","payload":[]}}`:        "input.payload must be a JSON object",
		`{"input":{"tool_name":"a"},"limits":{"x":1}}`:    "limits must give limits of the policy numbers that are not negative",
		`{"input":{"tool_name":"a"},"now":"yesterday"}`:   "now has a value of the wrong type or form",
		`{"input":{"tool_name":"a"},"later":"yesterday"}`: `Member "later" is not known`,
	} {
		w.refuses(body, w.request("POST", simulate, body), 422, message)
	}
	w.refuses("another version", w.request("POST", simulate, `{"last":1,"version":2}`), 404, "Not found")
	w.refuses("another policy", w.request("POST", "/policies/nothing/simulate", `{"last":1}`), 404, "Not found")
	w.refuses("another organization's", w.request("POST", simulate, `{"last":1}`, as("blue-owner")), 404, "Not found")
	w.refuses("much", w.request("POST", simulate, `{"input":{"tool_name":"a","payload":{"x":"`+strings.Repeat("x", 600<<10)+`"}}}`), 413, "The body is too large")
}

// send appends an event of an organization's first agent with a declared decision, as if no policy had been active.
func (w *world) send(tenant id.Tenant, tool, payload string, declared id.Decision) {
	w.t.Helper()
	who := w.first[tenant]
	name := id.Event(rand.Text())
	members := map[string]any{
		"schema_version": 1, "event_id": name, "organization_id": ledgertest.Organization(tenant).String(), "trace_id": "t",
		"agent_id": who.Agent, "key_id": who.Key, "emitted_at": id.InstantOf(w.Clock()).String(), "actor_type": "agent",
		"actor_principal": "svc", "action_kind": "tool_call", "policy_decision": declared.String(), "payload": json.RawMessage(payload),
	}
	if tool != "" {
		members["tool_name"] = tool
	}
	text, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	full, err := event.Sign(text, who.Private)
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := event.Parse(full, event.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.Ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, log.Attestation{
			Form: event.FormDigest, PublicKey: did.Multikey(who.Private.Public().Bytes()), Signer: event.SignerAgent, Custody: event.CustodyServer, IngestKeyID: "ik",
			Policy:     event.Policy{Evaluated: tool != "", Declared: declared, Effective: declared, PolicyID: "none", RuleID: "none", Engine: "rules", EvaluatedAt: id.InstantOf(w.Clock())},
			Disclosure: id.DiscloseRecord,
		})}}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
