package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

const requestsPath = "/access/v1/requests"

// refundAccess returns an access evaluation that needs one approval under refundRules.
func refundAccess(m *member, change fields) fields {
	f := access(m, "acme.refund", fields{"action": fields{"name": "acme.refund", "properties": fields{"amount": 7.0}}, "context": fields{"shift": "day"}})
	for name, value := range change {
		if f[name] = value; value == nil {
			delete(f, name)
		}
	}
	return f
}

const refundRules = `[{"rule_id":"ask","tool":"acme.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}],"reason":"A person looks"},
	{"rule_id":"no","tool":"acme.deny","decision":"deny","reason":"never"}]`

// denied returns the context of the denial of an evaluation.
func (w *world) denied(token string, f fields) fields {
	w.Helper()
	a := w.post(accessPath, token, text(w, f))
	context, _ := a.fields["context"].(map[string]any)
	if a.Code != http.StatusOK || a.fields["decision"] != false {
		w.Errorf("got %d %s, want a denial", a.Code, a.Body)
	}
	return context
}

// request returns the body of the request that follows the denial of an evaluation.
func (w *world) request(token string, f fields) fields {
	w.Helper()
	hint, _ := w.denied(token, f)["access_request"].(map[string]any)
	r := fields{"denial": fields{"binding_token": hint["binding_token"], "expires_at": hint["expires_at"], "reason": "approval_required"}}
	for name, value := range f {
		r[name] = value
	}
	return r
}

// task requests access and returns the ID of the task.
func (w *world) task(token string, f fields) string {
	w.Helper()
	a := w.post(requestsPath, token, text(w, w.request(token, f)))
	if a.Code != http.StatusAccepted {
		w.Fatalf("got %d %s", a.Code, a.Body)
	}
	return a.fields["task"].(map[string]any)["id"].(string)
}

// again returns an evaluation with an approval and, if by is not nil, its agent's proof.
func (w *world) again(f fields, task string, by *member, digest string) fields {
	old, _ := f["context"].(fields)
	context := fields{"approval": fields{"id": task, "approved_until": "2026-11-20T13:00:00.000Z"}}
	for name, value := range old {
		context[name] = value
	}
	if by != nil {
		proof := by.agent.Private.Sign(approval.ConsumeMessage(approval.ID(task), mustHash(w, digest)))
		context["approval_proof_b64"] = base64Of(proof[:])
	}
	next := fields{"context": context}
	for name, value := range f {
		if name != "context" {
			next[name] = value
		}
	}
	return next
}

func mustHash(t testing.TB, text string) id.Hash {
	t.Helper()
	h, err := id.ParseHash(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// actionOf returns the action digest of an evaluation by the naive mapping.
func actionOf(t testing.TB, m *member, f fields) string {
	t.Helper()
	native := nativeOf(m, f)
	a, err := grant.NewAction(m.id, id.Agent(fmt.Sprint(native["agent_id"])), id.Tool(native["tool_name"].(string)), []byte(text(t, native["payload"])))
	if err != nil {
		t.Fatal(err)
	}
	return a.Digest().String()
}

// A denial is requested, approved and used, once, by the agent's proof. The grant is one of the native API.
func TestAccessRequest(t *testing.T) {
	w := newWorld(t)
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "pol-1", refundRules)
	}
	f := refundAccess(&w.red, nil)
	digest := actionOf(t, &w.red, f)
	denial := w.denied(w.red.token, f)
	hint, _ := denial["access_request"].(map[string]any)
	if denial["reason"] != "approval_required" || hint["endpoint"] != "https://log.test"+requestsPath || hint["expires_at"] != id.InstantOf(w.Clock().Add(10*time.Minute)).String() ||
		fmt.Sprint(hint["display"]) != "map[description:A person looks]" {
		t.Errorf("got %v", denial)
	}
	a := w.post(requestsPath, w.red.token, text(t, w.request(w.red.token, f)), "X-Request-ID: mine", "Idempotency-Key: k")
	task, _ := a.fields["task"].(map[string]any)["id"].(string)
	url := "https://log.test" + requestsPath + "/" + task
	pending := `{"task":{"id":"` + task + `","status":"pending","status_endpoint":"` + url + `","expires_at":"` + id.InstantOf(w.Clock().Add(time.Hour)).String() +
		`","links":{"cancel":"` + url + `/cancel"}}}`
	if a.Code != http.StatusAccepted || a.Body.String() != pending || a.Header().Get("Location") != url || a.Header().Get("X-Request-Id") != "mine" {
		t.Errorf("got %d %s, %v, want %s", a.Code, a.Body, a.Header(), pending)
	}
	for _, change := range []fields{nil, {"context": fields{"shift": "day", "time": "2026-11-20T12:00:00Z"}}} {
		if again := w.post(requestsPath, w.red.token, text(t, w.request(w.red.token, refundAccess(&w.red, change)))); again.Code != http.StatusAccepted || again.Body.String() != pending {
			t.Errorf("the same request: got %d %s", again.Code, again.Body)
		}
	}
	if a := w.do("GET", approvalsPath+"/"+task, w.red.token, ""); a.fields["action_digest"] != digest {
		t.Errorf("got %s, want the action %s", a.Body, digest)
	}
	if got := w.denied(w.red.token, w.again(f, task, &w.red, digest)); got["reason"] != "approval_pending" || got["next_action"] != "retry" || got["retry_after"] != 5.0 || got["access_request"] != nil {
		t.Errorf("pending: got %v", got)
	}
	w.agree(&w.red, approvalsPath+"/"+task, digest, "acc_1")
	approved := `{"task":{"id":"` + task + `","status":"approved","status_endpoint":"` + url + `","display":{"description":"yes from acc_1"}},"result":{"mode":"reevaluate","approval":{"id":"` +
		task + `","approved_until":"` + id.InstantOf(w.Clock().Add(time.Hour)).String() + `"}}}`
	if a := w.do("GET", requestsPath+"/"+task+"?wait=30", w.red.token, ""); a.Code != 200 || a.Body.String() != approved {
		t.Errorf("got %d %s, want %s", a.Code, a.Body, approved)
	}
	if a := w.post(requestsPath, w.red.token, text(t, w.request(w.red.token, f))); a.Code != http.StatusCreated || a.Body.String() != approved {
		t.Errorf("requested when approved: got %d %s", a.Code, a.Body)
	}
	before := w.sizes()
	if got := w.denied(w.red.token, w.again(f, task, nil, "")); got["reason"] != "approval_proof_required" || got["next_action"] != "none" || got["action_digest"] != digest || got["access_request"] != nil {
		t.Errorf("without a proof: got %v", got)
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
	used := w.again(f, task, &w.red, digest)
	used["context"].(fields)["time"] = "2026-11-20T12:01:00Z"
	a = w.post(accessPath, w.red.token, text(t, used))
	context, _ := a.fields["context"].(map[string]any)
	if a.Code != 200 || a.fields["decision"] != true || fmt.Sprint(context["approval"]) != "map[approved_until:"+id.InstantOf(w.Clock().Add(5*time.Minute)).String()+" id:"+task+"]" {
		t.Fatalf("got %d %s, want an access", a.Code, a.Body)
	}
	key, _, _, err := w.approvals.GrantKey(t.Context(), w.red.tenant)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := grant.Open([]byte(context["grant"].(string)), key); err != nil || g.Approval != task || g.Check(mustHash(t, digest), id.InstantOf(w.Clock())) != nil {
		t.Errorf("grant: got %+v, %v", g, err)
	}
	got := w.denied(w.red.token, used)
	if next, _ := got["access_request"].(map[string]any); got["reason"] != "approval_used" || got["next_action"] != "request" || next["binding_token"] == nil {
		t.Errorf("used again: got %v", got)
	}
	if a := w.do("GET", requestsPath+"/"+task, w.red.token, ""); a.Body.String() != approved {
		t.Errorf("the task after its use: got %s, want %s", a.Body, approved)
	}
	if next := w.task(w.red.token, f); next == task {
		t.Error("a request after the use finds the used approval")
	}
}

// What an approval is not for is denied, and the approval remains usable: another act, agent, key or organization, and a
// proof by another agent.
func TestAccessWithAnothersApproval(t *testing.T) {
	w := newWorld(t)
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "pol-1", refundRules)
	}
	_, another, err := w.agents.CreateAgent(t.Context(), w.red.tenant, "acc", agent.Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	other := w.red
	other.agent = another
	key := w.ingestKey(&w.red, org.WantedKey{})
	f := refundAccess(&w.red, nil)
	digest := actionOf(t, &w.red, f)
	task := w.task(w.red.token, f)
	w.agree(&w.red, approvalsPath+"/"+task, digest, "acc_1")
	for name, c := range map[string]struct {
		token        string
		f            fields
		reason, next string
	}{
		"another key":            {key, w.again(f, task, &w.red, digest), "approval_unverifiable", "none"},
		"another organization":   {w.blue.token, w.again(refundAccess(&w.blue, nil), task, &w.blue, actionOf(t, &w.blue, refundAccess(&w.blue, nil))), "approval_unverifiable", "none"},
		"another agent":          {w.red.token, w.again(refundAccess(&other, nil), task, &other, actionOf(t, &other, refundAccess(&other, nil))), "out_of_scope", "request"},
		"another agent's proof":  {w.red.token, w.again(f, task, &other, digest), "approval_unverifiable", "none"},
		"a proof of another act": {w.red.token, w.again(f, task, &w.red, strings.Repeat("0", 64)), "approval_unverifiable", "none"},
		"no such approval":       {w.red.token, w.again(f, "apr_none", &w.red, digest), "approval_unverifiable", "none"},
		"another amount":         {w.red.token, w.again(refundAccess(&w.red, fields{"action": fields{"name": "acme.refund", "properties": fields{"amount": 8}}}), task, &w.red, digest), "out_of_scope", "request"},
		"another resource":       {w.red.token, w.again(refundAccess(&w.red, fields{"resource": fields{"type": "order", "id": "4712"}}), task, &w.red, digest), "out_of_scope", "request"},
		"another context":        {w.red.token, w.again(refundAccess(&w.red, fields{"context": fields{"shift": "night"}}), task, &w.red, digest), "out_of_scope", "request"},
		"without its context":    {w.red.token, w.again(refundAccess(&w.red, fields{"context": nil}), task, &w.red, digest), "out_of_scope", "request"},
		"a denied act":           {w.red.token, w.again(access(&w.red, "acme.deny", nil), task, &w.red, digest), "policy_denied", "none"},
	} {
		got := w.denied(c.token, c.f)
		if got["reason"] != c.reason || got["next_action"] != c.next || (got["access_request"] != nil) != (c.next == "request") {
			t.Errorf("%s: got %v", name, got)
		}
	}
	narrow := w.ingestKey(&w.red, org.WantedKey{Scopes: 1 << org.ScopeEvaluate})
	w.expect(w.post(accessPath, narrow, text(t, w.again(f, task, &w.red, digest))), 403, "The ingest key does not have the scope approvals")
	if a := w.post(accessPath, narrow, text(t, f)); strings.Contains(a.Body.String(), "access_request") || !strings.Contains(a.Body.String(), `"reason":"A person looks"`) {
		t.Errorf("a key that cannot request: got %s", a.Body)
	}
	if a := w.post(accessPath, w.red.token, text(t, w.again(access(&w.red, "acme.allow", nil), task, &w.red, digest))); a.Body.String() != `{"decision":true}` {
		t.Errorf("an allowed act: got %s", a.Body)
	}
	several := w.post(accessPath+"s", w.red.token, text(t, fields{"evaluations": []any{w.again(f, task, &w.red, digest), access(&w.red, "acme.allow", nil)}}))
	if want := `{"evaluations":[{"decision":false,"context":{"error":{"status":400,"message":"context.approval is for a single evaluation: it is used by the decision"}}},{"decision":true}]}`; several.Body.String() != want {
		t.Errorf("one of several: got %s", several.Body)
	}
	if a := w.post(accessPath+"s", w.red.token, text(t, w.again(f, task, &w.red, digest))); a.fields["decision"] != true {
		t.Errorf("after all these: got %s, want an access", a.Body)
	}
}

// An approval that has ended is never access. Each end has its reason.
func TestAccessWithEndedApproval(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", refundRules)
	ballot := func(task, digest, vote string) {
		if _, err := w.approvals.Vote(t.Context(), w.red.tenant, approval.ID(task), approval.Ballot{Account: "acc_1", Vote: vote, Action: mustHash(t, digest)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		name         string
		end          func(task, digest string)
		status       string
		reason, next string
	}{
		{"denied", func(task, digest string) { ballot(task, digest, "deny") }, "denied", "approval_denied", "none"},
		{"cancelled", func(task, _ string) {
			if a := w.post(requestsPath+"/"+task+"/cancel", w.red.token, "{}"); a.Code != 200 || a.fields["task"].(map[string]any)["status"] != "cancelled" {
				t.Errorf("got %d %s", a.Code, a.Body)
			}
		}, "cancelled", "approval_expired", "request"},
		{"revoked", func(task, digest string) {
			ballot(task, digest, "approve")
			if err := w.approvals.Revoke(t.Context(), w.red.tenant, "acc_1", approval.ID(task), approval.Remark{}); err != nil {
				t.Fatal(err)
			}
		}, "cancelled", "approval_expired", "request"},
		{"consumed natively", func(task, digest string) {
			ballot(task, digest, "approve")
			w.expect(w.post(approvalsPath+"/"+task+"/consume", w.red.token, claim(&w.red, approvalsPath+"/"+task, digest)), 200, "")
		}, "approved", "approval_used", "request"},
		{"invalidated", func(task, digest string) {
			ballot(task, digest, "approve")
			w.activate(&w.red, "pol-2", strings.Replace(refundRules, `"ask"`, `"ask2"`, 1))
		}, "cancelled", "approval_expired", "request"},
		{"expired", func(task, digest string) { ballot(task, digest, "approve"); w.Pass(time.Hour) }, "expired", "approval_expired", "request"},
	} {
		f := refundAccess(&w.red, fields{"resource": fields{"type": "order", "id": fmt.Sprint(i)}})
		digest, task := actionOf(t, &w.red, f), w.task(w.red.token, f)
		c.end(task, digest)
		got := w.denied(w.red.token, w.again(f, task, &w.red, digest))
		if got["reason"] != c.reason || got["next_action"] != c.next || (got["access_request"] != nil) != (c.next == "request") {
			t.Errorf("%s: got %v", c.name, got)
		}
		a := w.do("GET", requestsPath+"/"+task, w.red.token, "")
		if got := a.fields["task"].(map[string]any)["status"]; a.Code != 200 || got != c.status || (a.fields["result"] != nil) != (c.status == "approved") {
			t.Errorf("%s: got %d %s, want %s", c.name, a.Code, a.Body, c.status)
		}
		w.expectProblem(w.post(requestsPath+"/"+task+"/cancel", w.red.token, ""), 409, "invalid_task_state", "The task is not pending")
	}
	if f := refundAccess(&w.red, nil); true {
		task := w.task(w.red.token, f)
		off := false
		if _, err := w.agents.Change(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, agent.Patch{Active: &off}); err != nil {
			t.Fatal(err)
		}
		if got := w.denied(w.red.token, w.again(f, task, &w.red, actionOf(t, &w.red, f))); got["code"] != "agent_inactive" {
			t.Errorf("got %v", got)
		}
	}
}

func (w *world) expectProblem(a answer, status int, name, message string) {
	w.Helper()
	if a.Code != status || a.fields["type"] != "urn:openid:authzen:access-request:error:"+name || a.fields["status"] != float64(status) || a.fields["detail"] != message ||
		a.fields["error"] != message || a.Header().Get("Content-Type") != "application/problem+json" {
		w.Errorf("got %d %s, want %d %s %q", a.Code, a.Body, status, name, message)
	}
}

// A request that is not bound to its denial, or has anything that the service does not know, is refused by name.
func TestAccessRequestRefused(t *testing.T) {
	w := newWorld(t)
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "pol-1", refundRules)
	}
	key := w.ingestKey(&w.red, org.WantedKey{})
	f := refundAccess(&w.red, nil)
	request := func(change fields) string {
		r := w.request(w.red.token, f)
		for name, value := range change {
			if r[name] = value; value == nil {
				delete(r, name)
			}
		}
		return text(t, r)
	}
	denial := func(change fields) fields {
		d := w.request(w.red.token, f)["denial"].(fields)
		for name, value := range change {
			if d[name] = value; value == nil {
				delete(d, name)
			}
		}
		return fields{"denial": d}
	}
	before := w.sizes()
	const other = "denial.binding_token is of another denial: subject, action, resource and context must be those that were denied to this ingest key"
	for name, c := range map[string]struct {
		token, body, message string
	}{
		"another key":          {key, request(nil), other},
		"another organization": {w.blue.token, request(nil), other},
		"another act":          {"", request(fields{"action": fields{"name": "acme.refund", "properties": fields{"amount": 8}}}), other},
		"another tool":         {"", request(fields{"action": fields{"name": "acme.allow"}}), other},
		"another resource":     {"", request(fields{"resource": fields{"type": "order", "id": "1"}}), other},
		"another agent":        {"", request(fields{"subject": fields{"type": "agent", "id": "someone"}}), other},
		"more context":         {"", request(fields{"context": fields{"shift": "day", "why": "renewal"}}), other},
		"no denial":            {"", request(fields{"denial": nil}), "denial.binding_token is not one of this service"},
		"no token":             {"", request(denial(fields{"binding_token": nil})), "denial.binding_token is not one of this service"},
		"another token":        {"", request(denial(fields{"binding_token": "eyJhbGciOiJFUzI1NiJ9.e30.c2ln"})), "denial.binding_token is not one of this service"},
		"a forged token":       {"", request(denial(fields{"binding_token": strings.Repeat("A", 54)})), other},
		"another expiry":       {"", request(denial(fields{"expires_at": "2027-11-20T12:10:00.000Z"})), "denial.expires_at is not the one of the denial"},
		"no expiry":            {"", request(denial(fields{"expires_at": nil})), "denial.expires_at is not the one of the denial"},
	} {
		if c.token == "" {
			c.token = w.red.token
		}
		w.expectProblem(w.post(requestsPath, c.token, c.body), 400, "invalid_denial_binding", c.message)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	for body, message := range map[string]string{
		request(fields{"items": []any{}}): `Member "items" is not known`, request(fields{"callback": fields{}}): `Member "callback" is not known`,
		request(fields{"requested_access": fields{}}): `Member "requested_access" is not known`, request(fields{"client": fields{}}): `Member "client" is not known`,
		request(fields{"subject": fields{"type": "agent", "id": "a", "x": 1}}): `Member "subject/x" is not known`,
		request(denial(fields{"evaluation_id": "e"})):                          `Member "denial/evaluation_id" is not known`,
		request(denial(fields{"template": 1})):                                 `Member "denial/template" is not known`,
		request(fields{"subject": nil}):                                        "subject is missing",
		request(fields{"resource": nil}):                                       "resource is missing",
		request(fields{"context": 1}):                                          "context must be an object",
		request(fields{"subject": fields{"type": "user", "id": "a"}}):          "subject.type must be agent: the policy decides on acts of agents",
		"[]": "The body must be a JSON object",
	} {
		w.expect(w.post(requestsPath, w.red.token, body), 400, message)
	}
	evaluates := w.ingestKey(&w.red, org.WantedKey{Scopes: 1 << org.ScopeEvaluate})
	for _, path := range []string{requestsPath, requestsPath + "/apr_x/cancel"} {
		w.expect(w.post(path, evaluates, "{}"), 403, "The ingest key does not have the scope approvals")
		w.expect(w.post(path, "apl_live_x", "{}"), 401, "Invalid API key")
		w.expect(w.post(path, w.red.token, "{}", "Content-Type: text/plain"), 415, "Content-Type must be application/json")
		w.expect(w.post(path, w.red.token, strings.Repeat("x", 300<<10)), 413, "The body is too large")
	}
	w.expect(w.do("GET", requestsPath+"/apr_x", evaluates, ""), 403, "The ingest key does not have the scope approvals")
	w.expect(w.do("GET", requestsPath+"/apr_x", "apl_live_x", ""), 401, "Invalid API key")
	task := w.task(w.red.token, f)
	for _, token := range []string{key, w.blue.token} {
		w.expectProblem(w.do("GET", requestsPath+"/"+task, token, ""), 404, "unknown_task", "Not found")
		w.expectProblem(w.post(requestsPath+"/"+task+"/cancel", token, ""), 404, "unknown_task", "Not found")
	}
	w.expect(w.do("GET", requestsPath+"/"+task+"?wait=31", w.red.token, ""), 400, "wait must be a whole number of seconds from 0 to 30")
	w.expect(w.post(requestsPath+"/"+task+"/cancel", w.red.token, `{"reason":"x"}`), 400, `Member "reason" is not known`)
	for context, message := range map[string]string{
		`{"approval":1}`:                                      "context.approval must be the approval of a task: The body must be a JSON object",
		`{"approval":{}}`:                                     "context.approval.id is missing",
		`{"approval":{"id":"a","state":"x"}}`:                 `context.approval must be the approval of a task: Member "state" is not known`,
		`{"approval":{"id":"a"},"approval_proof_b64":"AA=="}`: "context.approval_proof_b64 must be the base64 of 64 bytes",
		`{"approval_proof_b64":"AA=="}`:                       "context.approval_proof_b64 requires context.approval",
	} {
		g := refundAccess(&w.red, nil)
		body := strings.Replace(text(t, g), `"context":{"shift":"day"}`, `"context":`+context, 1)
		w.expect(w.post(accessPath, w.red.token, body), 400, message)
	}
	// Under another policy nothing is requestable, and nothing of the refused requests was stored.
	late := request(nil)
	w.activate(&w.red, "pol-2", `[{"rule_id":"no","tool":"**","decision":"deny"}]`)
	w.expectProblem(w.post(requestsPath, w.red.token, late), 400, "not_requestable", "No approval is needed or possible: the policy's decision is deny")
	w.Pass(10 * time.Minute)
	w.expectProblem(w.post(requestsPath, w.red.token, late), 410, "expired_denial", "The denial has expired: evaluate again")
	if after := w.sizes(); after[0] > before[0]+4 || after[1] != before[1] {
		t.Errorf("sizes went from %v to %v, want a key, a request, a policy and the end of the request", before, after)
	}
}

// An agent that does not exist cannot be asked for, and a key for other agents cannot ask.
func TestAccessRequestForOtherAgents(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", refundRules)
	f := refundAccess(&w.red, fields{"subject": fields{"type": "agent", "id": "never.seen"}})
	w.expectProblem(w.post(requestsPath, w.red.token, text(t, w.request(w.red.token, f))), 400, "not_requestable", "Unknown agent")
	narrow := w.ingestKey(&w.red, org.WantedKey{Agents: []id.Agent{w.red.agent.Agent}})
	w.expect(w.post(requestsPath, narrow, text(t, w.request(w.red.token, f))), 403, "The ingest key is not for this agent")
}

// Of concurrent evaluations with the same approval and proof, one is access.
func TestAccessOnce(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", refundRules)
	for round := range 5 {
		f := refundAccess(&w.red, fields{"resource": fields{"type": "order", "id": fmt.Sprint(round)}})
		digest, task := actionOf(t, &w.red, f), w.task(w.red.token, f)
		w.agree(&w.red, approvalsPath+"/"+task, digest, "acc_1")
		body := text(t, w.again(f, task, &w.red, digest))
		var group sync.WaitGroup
		var allowed atomic.Int32
		for range 8 {
			group.Go(func() {
				a := w.post(accessPath, w.red.token, body)
				if a.Code == 200 && a.fields["decision"] == true {
					allowed.Add(1)
				} else if a.Code != 200 || !strings.Contains(a.Body.String(), `"reason":"approval_used"`) {
					w.Errorf("got %d %s", a.Code, a.Body)
				}
			})
		}
		if group.Wait(); allowed.Load() != 1 {
			t.Errorf("got %d accesses, want 1", allowed.Load())
		}
	}
}
