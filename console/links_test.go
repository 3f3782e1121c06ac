package console_test

import (
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
)

// at returns a member of nested objects, or nil if there is none.
func at(body map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		body, _ = body[name].(map[string]any)
	}
	return body[path[len(path)-1]]
}

// guardedAct appends an intent that an approver approves, with its result, under the active policy p.
func (w *world) guardedAct(tenant id.Tenant, name, owner string) (intent string, approved approval.Approval) {
	w.t.Helper()
	w.call(201, "POST", "/policies", `{"policy_id":"p","name":"Refunds","rules":[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation",
		"reason":"money leaves","obligations":[{"type":"human_approval","approvals":1}]}]}`, as(owner+"-owner"))
	active := w.call(200, "POST", "/policies/p/activate", "", as(owner+"-owner"))
	var digest id.Hash
	if err := digest.UnmarshalText([]byte(active["policy_digest"].(string))); err != nil {
		w.t.Fatal(err)
	}
	who := w.first[tenant]
	send := func(name string, decided event.Policy, payload map[string]any) {
		decided.PolicyID, decided.PolicyVersion, decided.PolicyDigest, decided.RuleID, decided.Engine = "p", 1, digest, "r", "rules"
		decided.Effective = id.AllowWithObligation
		w.sendDecided(tenant, name, map[string]any{"agent_id": who.Agent, "key_id": who.Key, "tool_name": "acme.refund", "trace_id": "trc-" + name[:3], "payload": payload}, decided)
	}
	send(name, event.Policy{Evaluated: true, EvaluatedAt: id.InstantOf(w.Clock())}, map[string]any{"phase": "intent", "call_id": name})
	a, _, err := w.approvals.Ask(w.t.Context(), tenant, approval.Question{Agent: who.Agent, Tool: "acme.refund", Payload: []byte(`{"amount":7}`),
		Trace: id.Trace("trc-" + name[:3]), IngestKeyID: w.key(tenant), Intent: approval.Intent{Event: id.Event(name), RuleID: "r", PolicyDigest: digest}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.call(200, "POST", "/approvals/"+string(a.ID)+"/votes", fmt.Sprintf(`{"vote":"approve","action_digest":%q}`, a.ActionDigest), as(owner+"-approver"))
	send(name+"-result", event.Policy{Intent: id.Event(name)}, map[string]any{"phase": "result", "call_id": name, "status": "ok", "parent_event_id": name})
	return name, a
}

// Every answer about an act, its events, its approval, its policy, its agent, its trace or its run names the others, and nothing of another
// organization.
func TestLinks(t *testing.T) {
	w := newWorld(t)
	for _, o := range []struct {
		tenant id.Tenant
		name   string
	}{{red, "red"}, {blue, "blue"}} {
		intent, a := w.guardedAct(o.tenant, o.name+"-act", o.name)
		get := func(path string) map[string]any { return w.call(200, "GET", path, "", as(o.name+"-auditor")) }
		act := get("/acts/" + intent)
		result, ok := at(act, "result", "event_id").(string)
		if !ok || act["approval_id"] != string(a.ID) || act["outcome"] != "done" {
			t.Fatalf("%s: got %v", o.name, act)
		}
		version := get(fmt.Sprintf("/policies/%v?version=%v", act["policy_id"], act["policy_version"]))
		if version["policy_digest"] != act["policy_digest"] || act["rule_id"] != "r" {
			t.Errorf("%s: the act has policy %v %v, the policy %v", o.name, act["policy_version"], act["policy_digest"], version["policy_digest"])
		}
		get("/agents/" + act["agent_id"].(string))
		about := func(what string, link any) {
			t.Helper()
			named, _ := link.(map[string]any)
			if named["event_id"] != intent || named["log_index"] != act["log_index"] || named["outcome"] != "done" || named["approval_id"] != string(a.ID) ||
				named["result_index"] != at(act, "result", "log_index") {
				t.Errorf("%s, %s: got %v", o.name, what, link)
			}
		}
		shown := get("/approvals/" + string(a.ID))
		about("the approval", shown["act"])
		if shown["intent_event_id"] != intent || at(shown, "policy", "policy_digest") != act["policy_digest"] || at(shown, "policy", "policy_version") != act["policy_version"] {
			t.Errorf("%s: the approval has %v", o.name, shown)
		}
		if listed := get("/approvals"); fmt.Sprint(names(listed, "approvals", "intent_event_id")) != "["+intent+"]" {
			t.Errorf("%s: got %v", o.name, listed)
		}
		stated := get(fmt.Sprintf("/events/%.0f", shown["act"].(map[string]any)["result_index"]))
		if stated["event_id"] != result || stated["policy_digest"] != act["policy_digest"] || stated["policy_version"] != act["policy_version"] {
			t.Errorf("%s: the result has %v", o.name, stated)
		}
		about("the result", stated["act"])
		about("the intent", get("/events/" + intent)["act"])
		tree := get("/traces/" + act["trace_id"].(string))["events"].([]any)
		if len(tree) != 2 {
			t.Errorf("%s: the trace has %v", o.name, tree)
		}
		for _, e := range tree {
			about("the trace", e.(map[string]any)["act"])
		}
		events := get("/events?action_kind=ledger_approval")["events"].([]any)
		for _, e := range events {
			if m := e.(map[string]any); m["policy_id"] != nil || m["policy_version"] != nil || m["policy_digest"] != nil {
				t.Errorf("%s: an event of the service has %v", o.name, m)
			}
			about("a transition", get("/events/" + e.(map[string]any)["event_id"].(string))["act"])
		}
		ofApproval := 0
		for _, path := range []string{"/traces/ledger", "/events"} {
			for _, e := range get(path)["events"].([]any) {
				m := e.(map[string]any)
				if named := m["act"] != nil; named != (m["trace_id"] != "ledger" || m["action_kind"] == "ledger_approval") {
					t.Errorf("%s, %s: got %v", o.name, path, m)
				}
				if m["action_kind"] == "ledger_approval" {
					about(path, m["act"])
					ofApproval++
				}
			}
		}
		if ofApproval != 2*len(events) || len(events) == 0 {
			t.Errorf("%s: got %d events of approvals, want twice %d", o.name, ofApproval, len(events))
		}
		other := map[string]string{"red": "blue", "blue": "red"}[o.name]
		for _, path := range []string{"/acts/" + intent, "/approvals/" + string(a.ID), "/events/" + result, "/traces/" + act["trace_id"].(string)} {
			w.refuses("another organization's", w.request("GET", path, "", as(other+"-owner")), 404, "Not found")
		}
	}
}

// The steps of a run name their acts, also a step that consumed an approval and a step that states the result of another.
func TestLinksOfRuns(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/policies", `{"policy_id":"p","name":"Refunds","rules":[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation",
		"reason":"money leaves","obligations":[{"type":"human_approval","approvals":1}]}]}`)
	w.call(200, "POST", "/policies/p/activate", "")
	key := w.key(red)
	run, _, _, err := w.workflows.Start(t.Context(), red, workflow.Beginning{Workflow: workflow.Flow{Name: "invoices"}, External: "exec-1", IngestKeyID: key})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := w.approvals.Ask(t.Context(), red, approval.Question{Agent: run.Agent, Tool: "acme.refund", Payload: []byte(`{"amount":7}`),
		ActorType: "system", Trace: id.Trace(run.ID), IngestKeyID: key})
	if err != nil {
		t.Fatal(err)
	}
	w.call(200, "POST", "/approvals/"+string(a.ID)+"/votes", fmt.Sprintf(`{"vote":"approve","action_digest":%q}`, a.ActionDigest), as("red-approver"))
	for _, s := range []workflow.Step{
		{Key: "pay", Attempt: 1, Tool: "acme.refund", Payload: []byte(`{"amount":7}`), Status: "started", Approval: a.ID},
		{Key: "note", Attempt: 1, Kind: "note", Status: "ok"},
		{Key: "pay.result", Attempt: 1, Kind: "result", Status: "ok"},
	} {
		if _, err := w.workflows.Record(t.Context(), red, key, run.ID, []workflow.Step{s}); err != nil {
			t.Fatal(err)
		}
	}
	events := w.call(200, "GET", "/runs/"+string(run.ID), "", as("red-member"))["events"].([]any)
	pay := events[1].(map[string]any)
	for n, want := range []any{nil, "done", nil, "done"} {
		link, _ := events[n].(map[string]any)["act"].(map[string]any)
		if link["outcome"] != want || want != nil && (link["event_id"] != pay["event_id"] || link["approval_id"] != string(a.ID)) {
			t.Errorf("event %d: got %v", n, events[n])
		}
	}
	shown := w.call(200, "GET", "/approvals/"+string(a.ID), "")
	if at(shown, "act", "event_id") != pay["event_id"] || shown["intent_event_id"] != nil || at(shown, "act", "result_index") == nil {
		t.Errorf("the approval: got %v", shown)
	}
	act := w.call(200, "GET", "/acts/"+pay["event_id"].(string), "")
	if act["approval_id"] != string(a.ID) || act["trace_id"] != string(run.ID) || act["policy_version"] != 1.0 ||
		act["policy_digest"] != at(shown, "policy", "policy_digest") || at(act, "result", "event_id") != events[3].(map[string]any)["event_id"] {
		t.Errorf("the act: got %v", act)
	}
}
