package ingest_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

const approvalsPath = "/v1/ingest/approvals"

// voters allows everyone to vote.
type voters struct{}

func (voters) ByID(_ context.Context, who account.ID) (account.Account, error) {
	return account.Account{ID: who}, nil
}

func (voters) Membership(_ context.Context, t id.Tenant, who account.ID) (account.Membership, error) {
	return account.Membership{Account: who, Tenant: t, Role: account.Approver}, nil
}

// refund is a question that requires two approvers.
var refund = fields{"tool_name": "acme.ask", "payload": fields{"amount": 7}, "trace_id": "trc-1"}

// ask requests an approval and returns its path and action digest.
func (w *world) ask(m *member, change fields) (path, digest string) {
	w.Helper()
	a := w.post(approvalsPath, m.token, w.question(m, change))
	w.expect(a, http.StatusCreated, "")
	return approvalsPath + "/" + a.fields["approval_id"].(string), a.fields["action_digest"].(string)
}

func (w *world) agree(m *member, path, digest string, voters ...account.ID) {
	w.Helper()
	action, err := id.ParseHash(digest)
	if err != nil {
		w.Fatal(err)
	}
	for _, who := range voters {
		_, err := w.approvals.Vote(context.Background(), m.tenant, approval.ID(strings.TrimPrefix(path, approvalsPath+"/")),
			approval.Ballot{Account: who, Vote: approval.Approve, Action: action, Remark: approval.Remark{Comment: "yes from " + string(who), Code: "fine"}})
		if err != nil {
			w.Fatal(err)
		}
	}
}

// claim returns the body that consumes an approval.
func claim(m *member, path, digest string) string {
	message := "APS1-CONSUME\n" + strings.TrimPrefix(path, approvalsPath+"/") + "\n" + digest + "\n"
	proof := m.agent.Private.Sign([]byte(message))
	return `{"action_digest":"` + digest + `","proof_b64":"` + base64.StdEncoding.EncodeToString(proof[:]) + `"}`
}

func TestApproval(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	answer := w.post(approvalsPath, w.red.token, w.question(&w.red, refund))
	w.expect(answer, http.StatusCreated, "")
	name, digest := answer.fields["approval_id"].(string), answer.fields["action_digest"].(string)
	want := `{"approval_id":"` + name + `","status":"pending","action_digest":"` + digest + `","expires_at":"` +
		id.InstantOf(w.Clock().Add(time.Hour)).String() + `","quorum":2,"approvals":0,"comment":null,"reason_code":null}`
	if answer.Body.String() != want || answer.Header().Get("Service-Version") != ingest.Version {
		t.Errorf("asked: got %s, want %s", answer.Body, want)
	}
	again := w.post(approvalsPath, w.red.token, w.question(&w.red, refund))
	if w.expect(again, http.StatusOK, ""); again.Body.String() != want {
		t.Errorf("asked again: got %s, want %s", again.Body, want)
	}
	path := approvalsPath + "/" + name
	w.agree(&w.red, path, digest, "acc_1")
	if a := w.do("GET", path, w.red.token, ""); a.Code != 200 || a.fields["approvals"] != 1.0 || a.fields["status"] != "pending" {
		t.Errorf("after one: got %d %s", a.Code, a.Body)
	}
	w.expect(w.post(path+"/consume", w.red.token, claim(&w.red, path, digest)), http.StatusConflict, "The approval is still pending")
	w.agree(&w.red, path, digest, "acc_2")
	if a := w.do("GET", path+"?wait=30", w.red.token, ""); a.Code != 200 || a.fields["status"] != "approved" || a.fields["comment"] != "yes from acc_2" || a.fields["reason_code"] != "fine" {
		t.Errorf("after two: got %d %s", a.Code, a.Body)
	}
	consumed := w.post(path+"/consume", w.red.token, claim(&w.red, path, digest))
	w.expect(consumed, http.StatusOK, "")
	key, _, _, err := w.approvals.GrantKey(t.Context(), w.red.tenant)
	if err != nil {
		t.Fatal(err)
	}
	g, err := grant.Open([]byte(consumed.fields["grant"].(string)), key)
	if err != nil || g.Approval != name || g.ActionDigest.String() != digest {
		t.Errorf("grant: got %+v, %v", g, err)
	}
	if a := w.post(path+"/consume", w.red.token, claim(&w.red, path, digest)); a.Body.String() != consumed.Body.String() {
		t.Errorf("consumed again: got %s", a.Body)
	}
	w.Pass(5 * time.Minute)
	w.expect(w.post(path+"/consume", w.red.token, claim(&w.red, path, digest)), http.StatusGone, "The approval was consumed and its grant has expired")
	w.expect(w.post(path+"/cancel", w.red.token, ""), http.StatusConflict, "The approval is consumed")
}

func TestApprovalIsOfItsIngestKey(t *testing.T) {
	w := newWorld(t)
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "pol-1", rules)
	}
	path, digest := w.ask(&w.red, refund)
	another := w.ingestKey(&w.red, org.WantedKey{})
	for name, token := range map[string]string{"another key": another, "another organization": w.blue.token} {
		for what, a := range map[string]answer{
			"get":     w.do("GET", path+"?wait=1", token, ""),
			"consume": w.post(path+"/consume", token, claim(&w.red, path, digest)),
			"cancel":  w.post(path+"/cancel", token, "{}"),
		} {
			if a.Code != http.StatusNotFound || a.Body.String() != `{"error":"Not found"}` {
				t.Errorf("%s by %s: got %d %s", what, name, a.Code, a.Body)
			}
		}
	}
	w.expect(w.post(path+"/cancel", w.red.token, "{}"), http.StatusOK, "")
	if a := w.do("GET", path, w.red.token, ""); a.fields["status"] != "cancelled" {
		t.Errorf("got %s", a.Body)
	}
}

func TestApprovalRefused(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	for name, c := range map[string]struct {
		change  fields
		status  int
		message string
	}{
		"no agent":            {fields{"agent_id": nil}, 422, "Missing organization_id, agent_id, or tool_name"},
		"another's":           {fields{"organization_id": w.blue.id.String()}, 403, "Organization mismatch for API key"},
		"allowed":             {nil, 422, "No approval is needed or possible: the policy's decision is allow"},
		"denied":              {fields{"tool_name": "acme.deny"}, 422, "No approval is needed or possible: the policy's decision is deny"},
		"unknown agent":       {fields{"tool_name": "acme.ask", "agent_id": "agt_none"}, 422, "Unknown agent"},
		"trace id":            {fields{"tool_name": "acme.ask", "trace_id": "a b"}, 422, "trace_id must match [A-Za-z0-9._:-]{1,128}, not . or .."},
		"trace id is no text": {fields{"tool_name": "acme.ask", "trace_id": 7}, 422, "trace_id must match [A-Za-z0-9._:-]{1,128}, not . or .."},
		"principal":           {fields{"tool_name": "acme.ask", "actor_principal": "a\nb"}, 422, "actor_principal must have 1 to 256 characters, none of them a control character"},
		"callback":            {fields{"tool_name": "acme.ask", "callback_url": "http://127.0.0.1/"}, 422, "callback_url must be a public https address of at most 2048 bytes"},
		"callback is no text": {fields{"tool_name": "acme.ask", "callback_url": 7}, 422, "callback_url must be a string"},
	} {
		a := w.post(approvalsPath, w.red.token, w.question(&w.red, c.change))
		if a.Code != c.status || a.fields["error"] != c.message {
			t.Errorf("%s: got %d %s, want %d %s", name, a.Code, a.Body, c.status, c.message)
		}
	}
	w.expect(w.post(approvalsPath, w.red.token, "{"), 422, "The body is not valid JSON")
	if got := w.State(t, w.red.tenant).Size(); got != 1 {
		t.Errorf("size: got %d, want 1", got)
	}
	path, digest := w.ask(&w.red, refund)
	w.agree(&w.red, path, digest, "acc_1", "acc_2")
	good := claim(&w.red, path, digest)
	for name, c := range map[string]struct {
		body    string
		status  int
		message string
	}{
		"no JSON":        {"{", 422, "The body is not valid JSON"},
		"unknown member": {`{"a":1}`, 422, `Member "a" is not known`},
		"digest":         {`{"action_digest":"ABC","proof_b64":""}`, 422, `Member "action_digest" has another type or form`},
		"short proof":    {`{"action_digest":"` + digest + `","proof_b64":"AAAA"}`, 422, "proof_b64 must be the base64 of 64 bytes"},
		"broken proof":   {strings.Replace(good, `proof_b64":"`, `proof_b64":"\n`, 1), 422, "proof_b64 must be the base64 of 64 bytes"},
		"wrong proof":    {claim(&w.blue, path, digest), 422, "proof_b64 is not the signature of an active key of the agent"},
		"another action": {claim(&w.red, path, strings.Repeat("0", 64)), 409, "The approval is for another agent, tool, payload or subject"},
	} {
		a := w.post(path+"/consume", w.red.token, c.body)
		if a.Code != c.status || a.fields["error"] != c.message {
			t.Errorf("%s: got %d %s, want %d %s", name, a.Code, a.Body, c.status, c.message)
		}
	}
	for _, wait := range []string{"31", "-1", "x", "1.5", "999"} {
		w.expect(w.do("GET", path+"?wait="+wait, w.red.token, ""), 422, "wait must be a whole number of seconds from 0 to 30")
	}
	w.Pass(time.Hour)
	w.expect(w.post(path+"/consume", w.red.token, good), http.StatusGone, "The approval has expired")
}

// All approval routes check the request before they look for the approval.
func TestApprovalAdmission(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	path, digest := w.ask(&w.red, refund)
	evaluates := w.ingestKey(&w.red, org.WantedKey{Scopes: 1 << org.ScopeEvaluate})
	for _, route := range []struct{ method, path, body string }{
		{"POST", approvalsPath, w.question(&w.red, refund)}, {"GET", path, ""},
		{"POST", path + "/consume", claim(&w.red, path, digest)}, {"POST", path + "/cancel", ""},
	} {
		w.expect(w.do(route.method, route.path, "nobody", route.body), 401, "Invalid API key")
		w.expect(w.do(route.method, route.path, evaluates, route.body), 403, "The ingest key does not have the scope approvals")
		w.expect(w.do(route.method, route.path, w.red.token, route.body, "Service-Version: 2020-01-01"), 422, "Service-Version is not known; known versions: 2026-05-18")
		if route.method == "GET" {
			continue
		}
		w.expect(w.do(route.method, route.path, w.red.token, route.body, "Content-Type: text/plain"), 415, "Content-Type must be application/json")
		w.expect(w.do(route.method, route.path, w.red.token, strings.Repeat("x", 300<<10)), 413, "The body is too large")
		if route.body == "" {
			w.expect(w.do(route.method, route.path, w.red.token, `{"a":1}`), 422, `Member "a" is not known`)
		}
	}
	w.expect(w.post(evaluatePath, evaluates, w.question(&w.red, fields{"tool_name": "acme.ask", "request_approval": true})), 403, "The ingest key does not have the scope approvals")
	w.expect(w.post(evaluatePath, w.red.token, w.question(&w.red, fields{"request_approval": "yes"})), 422, "request_approval must be true or false")
}

func TestEvaluateRequestsApproval(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	question := fields{"tool_name": "acme.ask", "payload": fields{"amount": 7}, "trace_id": "trc-1", "request_approval": true}
	a := w.post(evaluatePath, w.red.token, w.question(&w.red, question))
	w.expect(a, http.StatusOK, "")
	answer, ok := a.fields["approval"].(map[string]any)
	if !ok || answer["status"] != "pending" || a.fields["decision"] != "allow_with_obligation" {
		t.Fatalf("got %s", a.Body)
	}
	again := w.post(approvalsPath, w.red.token, w.question(&w.red, refund))
	if w.expect(again, http.StatusOK, ""); again.fields["approval_id"] != answer["approval_id"] {
		t.Errorf("asked by the other call: got %s, want %s", again.Body, answer["approval_id"])
	}
	for name, change := range map[string]fields{
		"allowed": {"tool_name": "acme.allow", "request_approval": true}, "not wanted": {"tool_name": "acme.ask", "request_approval": false},
	} {
		if a := w.post(evaluatePath, w.red.token, w.question(&w.red, change)); a.Code != 200 || a.fields["approval"] != nil {
			t.Errorf("%s: got %d %s", name, a.Code, a.Body)
		}
	}
}

// A key with the option requests approvals automatically, even for a tool that does not know about approvals.
func TestIngestKeyThatAsks(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	w.activate(&w.blue, "pol-1", rules)
	asks := w.ingestKey(&w.red, org.WantedKey{Name: "zapier", Asks: true})
	question := w.question(&w.red, fields{"tool_name": "acme.ask", "payload": fields{"amount": 7}})
	a := w.post(evaluatePath, asks, question)
	w.expect(a, http.StatusOK, "")
	answer, _ := a.fields["approval"].(map[string]any)
	if a.fields["decision"] != "allow_with_obligation" || answer["status"] != "pending" || answer["approval_id"] != a.fields["approval_id"] {
		t.Fatalf("got %s", a.Body)
	}
	if again := w.post(evaluatePath, asks, question); again.fields["approval_id"] != a.fields["approval_id"] {
		t.Errorf("got %s, want the same approval", again.Body)
	}
	for name, change := range map[string]fields{"allowed": {"tool_name": "acme.allow"}, "denied": {"tool_name": "acme.deny"}} {
		if a := w.post(evaluatePath, asks, w.question(&w.red, change)); a.Code != 200 || a.fields["approval_id"] != nil {
			t.Errorf("%s: got %d %s", name, a.Code, a.Body)
		}
	}
	if a := w.post(evaluatePath, w.red.token, question); a.Code != 200 || a.fields["approval_id"] != nil {
		t.Errorf("a key without the option: got %d %s", a.Code, a.Body)
	}
	w.expect(w.post(evaluatePath, asks, w.question(&w.red, fields{"tool_name": "acme.ask", "agent_id": "agt_nobody"})), 422, "Unknown agent")
	w.expect(w.post(evaluatePath, asks, w.question(&w.blue, fields{"tool_name": "acme.ask"})), 403, "Organization mismatch for API key")
}

// full has no capacity for another approval, and has lost the existing one.
type full struct{ ingest.Approvals }

func (full) Ask(context.Context, id.Tenant, approval.Question) (approval.Approval, bool, error) {
	return approval.Approval{}, false, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Message: "full", RetryAfter: time.Minute}
}

func (full) Get(context.Context, id.Tenant, string, approval.ID, time.Duration) (approval.Approval, error) {
	return approval.Approval{}, errors.New("a cause")
}

func TestTooManyApprovals(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) { o.Approvals, o.MaxPollsOrganization = full{o.Approvals}, 1 })
	w.activate(&w.red, "pol-1", rules)
	question := w.question(&w.red, fields{"tool_name": "acme.ask", "request_approval": true})
	w.activate(&w.blue, "pol-1", refundRules)
	access := text(t, w.request(w.blue.token, refundAccess(&w.blue, nil)))
	for _, c := range []struct {
		path string
		of   *member
		body string
	}{{approvalsPath, &w.red, question}, {evaluatePath, &w.red, question}, {requestsPath, &w.blue, access}} {
		path := c.path
		a := w.post(path, c.of.token, c.body)
		if w.expect(a, 429, "full"); a.fields["code"] != "rate_limited" || a.Header().Get("Retry-After") != "60" {
			t.Errorf("%s: got %s, Retry-After %q", path, a.Body, a.Header().Get("Retry-After"))
		}
	}
	w.expect(w.do("GET", approvalsPath+"/apr_00000000000000000000000000", w.red.token, ""), 500, "Internal error")
}

// What an agent states about an approval is only the agent's claim: the service's kinds, agent and keys are rejected,
// no other statement changes an approval, its record names the signer, and it cannot take the name of a future
// statement of the service.
func TestEventsThatClaimToBeApprovals(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	path, digest := w.ask(&w.red, refund)
	name := strings.TrimPrefix(path, approvalsPath+"/")
	payload := fields{"approval_id": name, "transition": "approved", "action_digest": digest, "step": 2}
	claim := func(change fields) fields {
		all := fields{"action_kind": "approval", "actor_type": "system", "actor_principal": "acc_1", "payload": payload}
		maps.Copy(all, change)
		return all
	}
	for what, c := range map[string]struct {
		change  fields
		message string
	}{
		"kind":       {fields{"action_kind": "ledger_approval"}, "An action_kind that begins with ledger_ is reserved for the server"},
		"agent":      {fields{"agent_id": "system"}, "agent_id system is reserved for the server"},
		"key":        {fields{"key_id": "system_1"}, "A key_id that begins with system_ or bridge_ is reserved for the server"},
		"bridge key": {fields{"key_id": "bridge_1"}, "A key_id that begins with system_ or bridge_ is reserved for the server"},
	} {
		envelope := w.envelope(&w.red, "claim-"+what[:3], claim(c.change))
		w.expect(w.send(&w.red, envelope), 422, c.message)
		if a := w.batch(&w.red, ndjson(envelope)); !strings.Contains(a.Body.String(), c.message) {
			t.Errorf("%s in a batch: got %s", what, a.Body)
		}
	}
	statements := len(w.Audit(t, w.red.tenant))
	w.mustCreate(&w.red, "claim", claim(nil))
	for _, transition := range []string{"denied", "revoked", "expired", "invalidated"} {
		payload["transition"] = transition
		text, err := jcs.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "ledger_approval\n%d\n%s", w.State(t, w.red.tenant).ConfigVersion(), text))
		guess := "ledger_approval:" + hex.EncodeToString(sum[:16]) // as well as an agent can
		w.expect(w.send(&w.red, w.envelope(&w.red, guess, claim(nil))), 422, reservedEvent)
	}
	if got := len(w.Audit(t, w.red.tenant)); got != statements {
		t.Errorf("the ledger has %d statements of the service, want %d", got, statements)
	}
	if a := w.do("GET", path, w.red.token, ""); a.fields["status"] != "pending" || a.fields["approvals"] != 0.0 {
		t.Errorf("got %s", a.Body)
	}
	if err := w.approvals.Revoke(t.Context(), w.red.tenant, "acc_1", approval.ID(name), approval.Remark{}); err != nil {
		t.Errorf("revoked: %v", err)
	}
}
