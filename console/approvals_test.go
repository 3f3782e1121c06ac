package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
)

// ask activates a policy under which refunds need two approvals, and requests one.
func (w *world) ask(tenant id.Tenant) approval.Approval {
	w.t.Helper()
	document := `{"policy_id":"p","name":"Refunds","rules":[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation",
		"reason":"money leaves","obligations":[{"type":"human_approval","approvals":2}]}]}`
	if _, err := w.policies.Create(w.t.Context(), tenant, "acc_x", []byte(document)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.policies.Activate(w.t.Context(), tenant, "acc_x", "p"); err != nil {
		w.t.Fatal(err)
	}
	question, _, err := w.approvals.Ask(w.t.Context(), tenant, approval.Question{
		Agent: w.first[tenant].Agent, Tool: "acme.refund", Payload: []byte(`{"amount":7}`), Trace: "trc-1", IngestKeyID: w.key(tenant),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return question
}

// key creates an ingest key as red-owner or blue-owner.
func (w *world) key(tenant id.Tenant) string {
	w.t.Helper()
	owner := map[id.Tenant]string{red: "red-owner", blue: "blue-owner"}[tenant]
	made := w.call(201, "POST", "/ingest-keys", `{"name":"k"}`, as(owner))
	return made["key"].(map[string]any)["key_id"].(string)
}

func TestApprovals(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red)
	path := "/approvals/" + string(a.ID)
	ballot := `{"vote":"approve","comment":"fine","reason_code":"in_budget","action_digest":"` + a.ActionDigest.String() + `"}`
	listed := w.call(200, "GET", "/approvals?status=pending", "", as("red-member"))
	if all := listed["approvals"].([]any); len(all) != 1 || listed["next"] != nil {
		t.Errorf("pending: got %v", listed)
	}
	now := id.InstantOf(w.Clock())
	equal(t, "pending", w.call(200, "GET", path, "", as("red-auditor")), `{
		"approval_id":"`+string(a.ID)+`","status":"pending","agent_id":"`+string(a.Agent)+`","tool_name":"acme.refund","payload":{"amount":7},
		"action_digest":"`+a.ActionDigest.String()+`","trace_id":"trc-1","actor_principal":null,"intent_event_id":null,"ingest_key_id":"`+a.IngestKeyID+`",
		"policy":{"policy_id":"p","policy_version":1,"policy_digest":"`+a.PolicyDigest.String()+`","rule_id":"r","reason":"money leaves"},
		"quorum":2,"signed":false,"votes":[],"created_at":"`+now.String()+`","expires_at":"`+(now+3_600_000).String()+`","ended_at":null,"comment":null,"reason_code":null,
		"may_vote":false,"why_not":"role","take_back_until":null,"act":null,"sign_in_changes":[]}`)
	stands := func(when, who string, want any) {
		t.Helper()
		for _, got := range []map[string]any{
			w.call(200, "GET", path, "", as(who)),
			w.call(200, "GET", "/approvals", "", as(who))["approvals"].([]any)[0].(map[string]any),
		} {
			if got["may_vote"] != (want == nil) || got["why_not"] != want {
				t.Errorf("%s: %s: got %v, %v, want %v", when, who, got["may_vote"], got["why_not"], want)
			}
		}
	}
	stands("pending", "red-owner", "own_request")
	stands("pending", "red-admin", nil)
	stands("pending", "red-member", "role")
	w.setActive(false)
	stands("in an inactive organization", "red-admin", "organization_inactive")
	w.setActive(true)

	w.refuses("who made the ingest key", w.request("POST", path+"/votes", ballot), 403, "You cannot decide on your own request")
	w.refuses("another vote", w.request("POST", path+"/votes", strings.Replace(ballot, "approve", "maybe", 1), as("red-admin")), 422, "vote must be approve or deny")
	w.refuses("a long comment", w.request("POST", path+"/votes", `{"vote":"deny","comment":"`+strings.Repeat("x", 1025)+`"}`, as("red-admin")), 422, "comment must have at most 1024 characters")
	w.refuses("a code of words", w.request("POST", path+"/votes", `{"vote":"deny","reason_code":"no no"}`, as("red-admin")), 422, "reason_code must match [a-z][a-z0-9_]{0,63}")
	w.refuses("no digest", w.request("POST", path+"/votes", `{"vote":"approve"}`, as("red-admin")), 409, "action_digest does not match the approval")
	w.refuses("another organization's", w.request("POST", path+"/votes", ballot, as("blue-admin")), 404, "Not found")
	w.refuses("another organization's", w.request("GET", path, "", as("blue-admin")), 404, "Not found")
	w.refuses("another organization's", w.request("POST", path+"/revoke", "", as("blue-admin")), 404, "Not found")

	w.call(200, "PUT", "/columns", `{"columns":["amount","order"]}`, as("red-owner"))
	for who, want := range map[string]string{"red-admin": "[map[amount:false label:amount path:amount text:7]]", "red-member": "<nil>"} {
		if got := fmt.Sprint(w.call(200, "GET", path, "", as(who))["shown"]); got != want {
			t.Errorf("columns shown to %s: got %s, want %s", who, got, want)
		}
	}

	mine := func(when, who, query string, want int) {
		t.Helper()
		page := w.call(200, "GET", "/approvals?may_vote=true"+query, "", as(who))
		if got := page["approvals"].([]any); len(got) != want || page["count"] != nil || page["next"] != nil {
			t.Errorf("%s: %s waits for %v, want %d", when, who, page, want)
		}
	}
	mine("pending", "red-admin", "", 1)
	mine("pending", "red-admin", "&status=pending&tool=acme.*", 1)
	mine("pending", "red-admin", "&tool=acme.pay", 0)
	mine("pending", "red-admin", "&order=oldest", 1)
	mine("pending", "red-admin", "&order=oldest&tool=acme.pay", 0)
	for _, who := range []string{"red-owner", "red-member", "red-auditor", "blue-admin"} {
		mine("pending", who, "", 0)
		mine("pending", who, "&order=oldest", 0)
	}
	w.setActive(false)
	mine("in an inactive organization", "red-admin", "", 0)
	w.setActive(true)
	w.refuses("another status", w.request("GET", "/approvals?may_vote=true&status=denied", ""), 422, "may_vote=true requires status=pending")
	w.refuses("another value", w.request("GET", "/approvals?may_vote=1", ""), 422, "may_vote must be true or absent")

	w.call(200, "POST", path+"/votes", ballot, as("red-admin"))
	mine("after a vote", "red-admin", "", 0)
	mine("after a vote", "red-approver", "", 1)
	stands("after a vote", "red-admin", "already_voted")
	stands("after a vote", "red-approver", nil)
	w.refuses("twice", w.request("POST", path+"/votes", ballot, as("red-admin")), 409, "You have already voted on this")
	after := w.call(200, "POST", path+"/votes", ballot, as("red-approver"))
	if after["status"] != "approved" || len(after["votes"].([]any)) != 2 {
		t.Errorf("approved: got %v", after)
	}
	stands("decided", "red-admin", "decided")
	for who, want := range map[string]any{"red-approver": (now + 300_000).String(), "red-admin": (now + 300_000).String(), "red-owner": nil, "red-auditor": nil} {
		if got := w.call(200, "GET", path, "", as(who))["take_back_until"]; got != want {
			t.Errorf("take back by %s: got %v, want %v", who, got, want)
		}
	}
	if after["may_vote"] != false || after["why_not"] != "decided" {
		t.Errorf("after the last vote: got %v, %v", after["may_vote"], after["why_not"])
	}
	if after["comment"] != "fine" || after["reason_code"] != "in_budget" {
		t.Errorf("remark of the vote: got %v", after)
	}
	w.refuses("a code of words", w.request("POST", path+"/revoke", `{"reason_code":"no no"}`), 422, "reason_code must match [a-z][a-z0-9_]{0,63}")
	revoked := w.call(200, "POST", path+"/revoke", `{"reason":"second thoughts","reason_code":"mistake"}`, as("red-approver"))
	if revoked["status"] != "revoked" || revoked["ended_at"] == nil || revoked["comment"] != "second thoughts" || revoked["reason_code"] != "mistake" {
		t.Errorf("revoked: got %v", revoked)
	}
	w.refuses("a vote afterwards", w.request("POST", path+"/votes", ballot, as("red-owner")), 403, "You cannot decide on your own request")
	w.refuses("a long reason", w.request("POST", path+"/revoke", `{"reason":"`+strings.Repeat("x", 1025)+`"}`), 422, "reason must have at most 1024 characters")
	for query, want := range map[string]string{
		"": "1 of 1 true", "?tool=acme.*": "1 of 1 true", "?tool=acme.pay": "0 of 0 true", "?agent_id=" + string(a.Agent): "1 of 1 true", "?agent_id=agt_x": "0 of 0 true",
		"?status=revoked&tool=**": "1 of 1 true", "?status=denied": "0 of 0 true", "?status=decided": "1 of 1 true", "?status=decided&order=newest&tool=acme.pay": "0 of 0 true",
	} {
		page := w.call(200, "GET", "/approvals"+query, "")
		count := page["count"].(map[string]any)
		if got := fmt.Sprint(len(page["approvals"].([]any)), " of ", count["matching"], " ", count["complete"]); got != want {
			t.Errorf("list %s: got %s, want %s", query, got, want)
		}
	}
	if later := w.call(200, "GET", "/approvals?after="+string(a.ID), ""); len(later["approvals"].([]any)) != 0 || later["count"] != nil {
		t.Errorf("the following page: got %v", later)
	}
	if other := w.call(200, "GET", "/approvals", "", as("blue-owner")); len(other["approvals"].([]any)) != 0 {
		t.Errorf("the other organization: got %v", other)
	}
	w.refuses("a glob", w.request("GET", "/approvals?tool=a..b", ""), 422, "tool must be segments of [A-Za-z0-9_:/-]+ or * with dots between them, and may end in **")
	w.refuses("an unknown status", w.request("GET", "/approvals?status=open", ""), 422, "status must be pending, approved, consumed, denied, expired, cancelled, revoked, invalidated or decided")
	w.refuses("an order", w.request("GET", "/approvals?order=age", ""), 422, "order must be newest or oldest")
	w.refuses("the oldest of all", w.request("GET", "/approvals?order=oldest", ""), 422, "order=oldest requires status=pending or may_vote=true")
	w.refuses("decided and open", w.request("GET", "/approvals?status=decided&may_vote=true", ""), 422, "may_vote=true requires status=pending")
	w.refuses("a bad limit", w.request("GET", "/approvals?limit=0", ""), 422, "limit must be from 1 to 1000")

	got := slices.DeleteFunc(w.kinds(red), func(s string) bool { return !strings.HasPrefix(s, "ledger_approval") })
	want := []string{
		"ledger_approval by " + a.IngestKeyID, "ledger_approval by acc_red-admin", "ledger_approval by acc_red-approver", "ledger_approval by acc_red-approver",
	}
	if !slices.Equal(got, want) {
		t.Errorf("ledger: got %q, want %q", got, want)
	}
}

// If the organization allows self-review, members may decide on their own requests, but only on requests made after the
// change. The ledger records the setting by name.
func TestSelfReview(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red)
	got := w.do(w.request("PATCH", "/organization", `{"self_review":true,"name":"Another"}`))
	if want := `{"error":"Approvals are open: self_review can be enabled once all of them are decided, used, cancelled or expired","code":"approvals_open"}`; got.status != 409 || strings.TrimSpace(got.text) != want {
		t.Errorf("while one is open: got %d %s, want %s", got.status, got.text, want)
	}
	if got := w.call(200, "GET", "/organization", ""); got["name"] != "red" || got["self_review"] != false {
		t.Errorf("refused, and changed: %v", got)
	}
	w.call(200, "PATCH", "/organization", `{"self_review":false}`)
	w.call(200, "PATCH", "/organization", `{"self_review":true}`, as("blue-owner"))
	w.call(200, "POST", "/approvals/"+string(a.ID)+"/revoke", "")
	w.call(200, "PATCH", "/organization", `{"self_review":true}`)
	statements := w.Audit(t, red)
	if last := statements[len(statements)-1]; last.Kind != "ledger_settings_changed" || last.Principal != "acc_red-owner" || !strings.Contains(last.Payload, `"names":["self_review"]`) {
		t.Errorf("ledger: got %+v", last)
	}
	again, _, err := w.approvals.Ask(t.Context(), red, approval.Question{
		Agent: a.Agent, Tool: a.Tool, Payload: a.Payload, Trace: a.Trace, IngestKeyID: a.IngestKeyID,
	})
	if a = again; err != nil {
		t.Fatal(err)
	}
	w.call(200, "PATCH", "/organization", `{"self_review":true}`) // it is already on
	w.call(200, "POST", "/approvals/"+string(a.ID)+"/votes", `{"vote":"deny","action_digest":"`+a.ActionDigest.String()+`"}`)
	w.refuses("revoked afterwards", w.request("POST", "/approvals/"+string(a.ID)+"/revoke", ""), 409, "The approval is denied")
}

// Requests under one policy become invalid when another policy is activated.
func TestActivationInvalidates(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red)
	w.call(201, "POST", "/policies", `{"policy_id":"q","name":"n","rules":[]}`)
	w.call(200, "POST", "/policies/q/activate", "")
	if got := w.call(200, "GET", "/approvals/"+string(a.ID), ""); got["status"] != "invalidated" {
		t.Errorf("got %v", got)
	}
	if err := w.approvals.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.kinds(red); got[len(got)-1] != "ledger_approval by operator" {
		t.Errorf("ledger: got %q", got)
	}
}
