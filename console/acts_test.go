package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
)

// guarded appends the intent of a refund, and unless status is "", its result.
func (w *world) guarded(tenant id.Tenant, n int, effective id.Decision, status string) id.Event {
	w.t.Helper()
	who := w.first[tenant]
	members := func(payload map[string]any) map[string]any {
		return map[string]any{"agent_id": who.Agent, "key_id": who.Key, "tool_name": "acme.refund", "trace_id": fmt.Sprint("trc-", n), "payload": payload}
	}
	name := fmt.Sprint("act-", n)
	w.sendDecided(tenant, name, members(map[string]any{"phase": "intent", "call_id": name, "amount": n}),
		event.Policy{Evaluated: true, Effective: effective, PolicyID: "p", PolicyVersion: 1, RuleID: "r", Engine: "rules", EvaluatedAt: id.InstantOf(w.Clock())})
	if status != "" {
		w.finish(tenant, n, effective, status)
	}
	return id.Event(name)
}

// finish appends the result of an intent.
func (w *world) finish(tenant id.Tenant, n int, effective id.Decision, status string) {
	w.t.Helper()
	who, name := w.first[tenant], fmt.Sprint("act-", n)
	w.sendDecided(tenant, name+"-result", map[string]any{"agent_id": who.Agent, "key_id": who.Key, "tool_name": "acme.refund", "parent_event_id": name,
		"payload": map[string]any{"phase": "result", "call_id": name, "status": status, "parent_event_id": name}},
		event.Policy{Effective: effective, Intent: id.Event(name), PolicyID: "p", PolicyVersion: 1, RuleID: "r", Engine: "rules"})
}

// Ten guarded acts, two of them approved and one refused, are ten acts in the list and in files: their results do not
// count, and the list names who voted.
func TestActs(t *testing.T) {
	w := newWorld(t)
	document := `{"policy_id":"p","name":"Refunds","rules":[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation",
		"reason":"money leaves","obligations":[{"type":"human_approval","approvals":1}]}]}`
	w.call(201, "POST", "/policies", document)
	w.call(200, "POST", "/policies/p/activate", "")
	key := w.key(red)
	ask := func(of id.Event, n int) approval.Approval {
		a, _, err := w.approvals.Ask(t.Context(), red, approval.Question{Agent: w.first[red].Agent, Tool: "acme.refund", Payload: fmt.Appendf(nil, `{"amount":%d}`, n),
			Trace: id.Trace(fmt.Sprint("trc-", n)), IngestKeyID: key, Intent: approval.Intent{Event: of, RuleID: "r"}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	vote := func(a approval.Approval, vote, who string) {
		w.call(200, "POST", "/approvals/"+string(a.ID)+"/votes", fmt.Sprintf(`{"vote":%q,"action_digest":%q}`, vote, a.ActionDigest), as(who))
	}
	for n := range 5 {
		w.guarded(red, n, id.Allow, "ok")
	}
	for n := 5; n < 9; n++ { // 5 and 6 are approved, 7 is refused, 8 waits
		a := ask(w.guarded(red, n, id.AllowWithObligation, ""), n)
		switch n {
		case 5, 6:
			vote(a, "approve", "red-approver")
			w.finish(red, n, id.AllowWithObligation, "ok")
		case 7:
			vote(a, "deny", "red-approver")
			w.finish(red, n, id.AllowWithObligation, "denied")
		}
	}
	w.guarded(red, 9, id.Deny, "")
	w.guarded(blue, 1, id.Allow, "ok")

	counts, names := map[string]int{}, []string{}
	acts := w.call(200, "GET", "/acts?order=oldest", "", as("red-auditor"))["acts"].([]any)
	for _, a := range acts {
		counts[a.(map[string]any)["outcome"].(string)]++
		names = append(names, a.(map[string]any)["event_id"].(string))
	}
	if got, want := fmt.Sprint(counts), "map[denied:1 done:7 refused:1 waiting:1]"; got != want || len(acts) != 10 {
		t.Errorf("got %d acts, %s, want 10, %s: %v", len(acts), got, want, names)
	}
	for query, want := range map[string]string{
		"outcome=refused": "[act-7]", "outcome=waiting": "[act-8]", "outcome=denied": "[act-9]", "outcome=open": "[]",
		"approver=red-approver@example.com": "[act-7 act-6 act-5]", "approver=acc_red-approver&outcome=done": "[act-6 act-5]",
		"approver=acc_red-admin": "[]", "outcome=done&order=oldest&limit=2": "[act-0 act-1]", "trace_id=trc-5": "[act-5]",
	} {
		var got []any
		for _, a := range w.call(200, "GET", "/acts?"+query, "")["acts"].([]any) {
			got = append(got, a.(map[string]any)["event_id"])
		}
		if fmt.Sprint(got) != want && (want != "[]" || len(got) > 0) {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
	shown := w.call(200, "GET", "/acts/act-7", "", as("red-member"))
	if got, want := fmt.Sprintln(shown["outcome"], shown["votes"], shown["result"].(map[string]any)["event_id"], shown["rule_id"]),
		"refused [map[account_id:acc_red-approver email:red-approver@example.com name:Ann of red-approver vote:deny]] act-7-result r\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	rows := w.download("/acts?format=csv&outcome=refused", "csv")
	if len(rows) != 1 || strings.Join(rows[0][5:], ",") != "acme.refund,svc,refused,allow_with_obligation,p,r,"+shown["approval_id"].(string)+",,red-approver@example.com,act-7-result,trc-7" {
		t.Errorf("got %q", rows)
	}
	if lines := w.download("/acts?format=ndjson", "ndjson"); len(lines) != 10 {
		t.Errorf("got %d lines", len(lines))
	}
	w.refuses("outcome", w.request("GET", "/acts?outcome=well", ""), 422,
		"outcome must be done, failed, refused, denied, expired, cancelled, unknown, waiting or open")
	w.refuses("a result", w.request("GET", "/acts/act-7-result", ""), 404, "Not found")
	w.refuses("another organization's", w.request("GET", "/acts/act-7", "", as("blue-owner")), 404, "Not found")
	if others := w.call(200, "GET", "/acts", "", as("blue-owner"))["acts"].([]any); len(others) != 1 {
		t.Errorf("blue has %v", others)
	}
}
