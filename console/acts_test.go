package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/org"
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
	from := w.State(t, red).Size()
	for n := range 5 {
		w.guarded(red, n, id.Allow, "ok")
	}
	for n := 5; n < 9; n++ { // 5 and 6 are approved, 7 is refused, 8 waits
		a := ask(w.guarded(red, n, id.AllowWithObligation, ""), n)
		w.Pass(time.Duration(n) * time.Second)
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
	if len(rows) != 1 || strings.Join(rows[0][5:], ",") != "acme.refund,svc,refused,allow_with_obligation,p,r,"+shown["approval_id"].(string)+",,red-approver@example.com,act-7-result,,,trc-7,,," {
		t.Errorf("got %q", rows)
	}
	if lines := w.download("/acts?format=ndjson", "ndjson"); len(lines) != 10 {
		t.Errorf("got %d lines", len(lines))
	}
	w.refuses("outcome", w.request("GET", "/acts?outcome=well", ""), 422,
		"outcome must be done, failed, refused, denied, expired, cancelled, unknown, waiting or open")
	w.refuses("a result", w.request("GET", "/acts/act-7-result", ""), 404, "Not found")
	w.refuses("another organization's", w.request("GET", "/acts/act-7", "", as("blue-owner")), 404, "Not found")
	for _, c := range []struct{ event, act, outcome string }{
		{"act-5", "act-5", "done"}, {"act-5-result", "act-5", "done"}, {"act-7-result", "act-7", "refused"}, {"act-9", "act-9", "denied"},
	} {
		act, _ := w.call(200, "GET", "/events/"+c.event, "")["act"].(map[string]any)
		if act["event_id"] != c.act || act["outcome"] != c.outcome {
			t.Errorf("%s: got %v", c.event, act)
		}
	}
	for _, e := range w.call(200, "GET", "/events?action_kind=ledger_approval&order=oldest", "")["events"].([]any) {
		name := e.(map[string]any)["event_id"].(string)
		act, _ := w.call(200, "GET", "/events/"+name, "")["act"].(map[string]any)
		if act == nil || w.call(200, "GET", "/acts/"+act["event_id"].(string), "")["approval_id"] != act["approval_id"] {
			t.Errorf("%s: got %v", name, act)
		}
	}
	if other := w.call(200, "GET", "/events/0", ""); other["act"] != nil {
		t.Errorf("the first event: got %v", other["act"])
	}
	w.checkStats(from)
	if others := w.call(200, "GET", "/acts", "", as("blue-owner"))["acts"].([]any); len(others) != 1 {
		t.Errorf("blue has %v", others)
	}
	w.checkActsOfPack()
}

// checkActsOfPack checks that a pack and its report have the ten acts of TestActs.
func (w *world) checkActsOfPack() {
	w.t.Helper()
	if _, err := w.orgs.Change(w.t.Context(), red, "acc_red-owner", org.Patch{Columns: &[]string{"amount"}}); err != nil {
		w.t.Fatal(err)
	}
	text := w.do(w.request("GET", "/evidence.zip?envelopes=1&tool=acme.refund", "", as("red-auditor"))).text
	r := w.checkPack(red, text)
	const who = "acc_red-approver (Ann of red-approver, red-approver@example.com, as the operator states)"
	want := []string{"acts        10 acts: 7 done, 1 refused, 1 denied, 1 waiting; 2 approved and done",
		"approver    " + who + ": 2 approved, 1 refused"}
	if got := r.ActLines(); !slices.Equal(got, want) || !slices.Equal(r.Acts.Columns, []string{"amount"}) {
		w.t.Errorf("got %q, %+v, want %q", got, r.Acts, want)
	}
	for _, part := range []string{"<h1>Acts of acme.refund</h1>", `<span class="label">Acts</span><b>10</b>`, `<span class="label">Done</span><b>7</b>`,
		`<span class="label">Refused, denied, failed</span><b>2</b>`, `<span class="label">Waiting, expired, others</span><b>1</b>`,
		"2 of the acts that are done had been approved by votes in the log", `<span class="o o-refused">refused</span></td><td><bdi>Ann of red-approver</bdi>`,
		`<bdi>Ann of red-approver</bdi>, <bdi>red-approver@example.com</bdi></td><td class="s2"><code>acc_red-approver</code></td><td class="num">2</td><td class="num">2</td><td class="num">1</td>`} {
		if !strings.Contains(text, part) {
			w.t.Errorf("the report does not have %s", part)
		}
	}
}

// checkStats compares the statistics of the acts of TestActs, since the event from.
func (w *world) checkStats(from id.Index) {
	w.t.Helper()
	outcomes := func(done, refused, denied, waiting int) string {
		return fmt.Sprintf(`{"done":%d,"failed":0,"refused":%d,"denied":%d,"expired":0,"cancelled":0,"unknown":0,"waiting":%d,"open":0}`, done, refused, denied, waiting)
	}
	approvals := func(requested, waiting, approved, refused, done int, p50, p90 string) string {
		return fmt.Sprintf(`{"requested":%d,"waiting":%d,"approved":%d,"refused":%d,"expired":0,"cancelled":0,"done":%d,"wait_p50_ms":%s,"wait_p90_ms":%s}`,
			requested, waiting, approved, refused, done, p50, p90)
	}
	none, decided := approvals(0, 0, 0, 0, 0, "null", "null"), approvals(3, 0, 2, 1, 2, "6000", "7000")
	all := fmt.Sprintf(`"acts":10,"outcomes":%s,"approvals":%s`, outcomes(7, 1, 1, 1), approvals(4, 1, 2, 1, 2, "6000", "7000"))
	tail := fmt.Sprintf(`"indexed_to":%d,"predecessor":null`, w.State(w.t, red).Size())
	count := func(members string, acts int, approvals string) string {
		return fmt.Sprintf(`{%s,"acts":%d,"approvals":%s}`, members, acts, approvals)
	}
	for query, want := range map[string]string{
		"": all + `,"counts":[]`,
		"by=outcome": all + `,"counts":[` + strings.Join([]string{count(`"outcome":"done"`, 7, approvals(2, 0, 2, 0, 2, "5000", "6000")), count(`"outcome":"refused"`, 1, approvals(1, 0, 0, 1, 0, "7000", "7000")),
			count(`"outcome":"denied"`, 1, none), count(`"outcome":"waiting"`, 1, approvals(1, 1, 0, 0, 0, "null", "null"))}, ",") + `]`,
		"by=approver": all + `,"counts":[` + count(`"approver":"","approver_name":"","approver_email":""`, 7, approvals(1, 1, 0, 0, 0, "null", "null")) + "," +
			count(`"approver":"acc_red-approver","approver_name":"Ann of red-approver","approver_email":"red-approver@example.com"`, 3, decided) + `]`,
		"by=rule,hour,agent,tool,decision&approver=red-approver@example.com": fmt.Sprintf(`"acts":3,"outcomes":%s,"approvals":%s,"counts":[%s]`, outcomes(2, 1, 0, 0), decided,
			count(fmt.Sprintf(`"rule_id":"r","hour":"2026-11-20T12:00:00.000Z","agent_id":%q,"tool_name":"acme.refund","decision":"allow_with_obligation"`, w.first[red].Agent), 3, decided)),
		"outcome=refused&tool=acme.*": fmt.Sprintf(`"acts":1,"outcomes":%s,"approvals":%s,"counts":[]`, outcomes(0, 1, 0, 0), approvals(1, 0, 0, 1, 0, "7000", "7000")),
		"trace_id=trc-5":              fmt.Sprintf(`"acts":1,"outcomes":%s,"approvals":%s,"counts":[]`, outcomes(1, 0, 0, 0), approvals(1, 0, 1, 0, 1, "5000", "5000")),
		"principal=nobody":            fmt.Sprintf(`"acts":0,"outcomes":%s,"approvals":%s,"counts":[]`, outcomes(0, 0, 0, 0), none),
	} {
		equal(w.t, query, w.call(200, "GET", fmt.Sprint("/stats?from=", from, "&", query), "", as("red-member")), "{"+want+","+tail+"}")
	}
	equal(w.t, "blue", w.call(200, "GET", "/stats", "", as("blue-owner"))["outcomes"].(map[string]any), outcomes(1, 0, 0, 0))
	w.refuses("text", w.request("GET", "/stats?q=act", ""), 422,
		`Unknown query parameter "q": known are agent_id, tool, action_kind, decision, declared, trace_id, principal, on_behalf_of, issuer, signer, from, to, outcome, approver, confirmed, column, by, log`)
}

// A text search reports how far it looked, and may last as long as the caller waits.
func TestTextSearchReports(t *testing.T) {
	w := newWorld(t)
	w.guarded(red, 1, id.Allow, "ok")
	w.guarded(red, 2, id.Allow, "ok")
	w.guarded(blue, 3, id.Allow, "ok")
	for _, path := range []string{"/events", "/acts"} {
		for _, wait := range []string{"", "&wait=20"} {
			all := w.call(200, "GET", path+"?q=no+such+text"+wait, "")
			to, _ := all["looked_to"].(map[string]any)
			if all["next"] != nil || all["looked"].(float64) < 2 || to["log_index"] == nil || to["received_at"] == nil {
				t.Errorf("%s%s: got %v", path, wait, all)
			}
			one := w.call(200, "GET", path+"?limit=1&q=ACT-2"+wait, "")
			if to := one["looked_to"].(map[string]any); one["next"] != fmt.Sprint(to["log_index"]) {
				t.Errorf("%s%s: got %v", path, wait, one)
			}
		}
		if plain := w.call(200, "GET", path, ""); plain["looked"] != nil || plain["looked_to"] != nil {
			t.Errorf("%s without a text: got %v", path, plain)
		}
	}
	w.refuses("wait", w.request("GET", "/acts?wait=1", ""), 422, "wait needs q")
}

// A file that was cut ends with a line that says so.
func TestCutFiles(t *testing.T) {
	w := newWorld(t)
	for n := range 3 {
		w.guarded(red, n, id.Allow, "ok")
	}
	for format, want := range map[string]string{"csv": "cut,after=%s,,,,,,,,,,,,,,,,,,,\r\n", "ndjson": `{"cut":true,"next":"%s"}` + "\n"} {
		read := func(limit int) string {
			return w.do(w.request("GET", fmt.Sprintf("/acts?limit=%d&order=oldest&format=%s", limit, format), "")).text
		}
		text, whole := read(2), read(3)
		second := w.call(200, "GET", "/acts/act-1", "")["log_index"]
		if end := fmt.Sprintf(want, fmt.Sprint(second)); !strings.HasSuffix(text, end) || strings.Contains(whole, "cut") {
			t.Errorf("%s: got\n%s\nand\n%s\nwant %s", format, text, whole, end)
		}
	}
}
