package ingest_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/policy"
)

// question returns the body of a valid evaluation, with changes.
func (w *world) question(m *member, change fields) string {
	w.Helper()
	f := fields{"organization_id": m.id.String(), "agent_id": m.agent.Agent, "tool_name": "acme.allow"}
	maps.Copy(f, change)
	maps.DeleteFunc(f, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(f)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

func TestEvaluate(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	compiled, err := w.policies.Active(t.Context(), w.State(t, w.red.tenant))
	if err != nil {
		t.Fatal(err)
	}
	digest := compiled.Digest().String()
	before := w.sizes()
	for _, c := range []struct {
		m      *member
		change fields
		input  policy.Input
		want   string
	}{
		{&w.red, fields{"tool_name": "acme.allow"}, policy.Input{Tool: "acme.allow"},
			`{"decision":"allow","policy_id":"pol-1","rule_id":"yes","reason":"Rule yes says allow.","engine":"rules","policy_version":1,"policy_digest":"` + digest + `","input_digest":"%"}`},
		{&w.red, fields{"tool_name": "acme.deny", "payload": fields{}}, policy.Input{Tool: "acme.deny"},
			`{"decision":"deny","policy_id":"pol-1","rule_id":"no","reason":"Rule no says deny.","engine":"rules","policy_version":1,"policy_digest":"` + digest + `","input_digest":"%"}`},
		{&w.red, fields{"tool_name": "acme.ask", "payload": fields{"amount_usd": 5, "currency": "USD"}}, policy.Input{Tool: "acme.ask", Payload: []byte(`{"amount_usd":5,"currency":"USD"}`)},
			`{"decision":"allow_with_obligation","policy_id":"pol-1","rule_id":"ask","reason":"ask \"first\"","engine":"rules","policy_version":1,"policy_digest":"` + digest + `","input_digest":"%","obligations":[{"type":"human_approval","approvals":2,"ttl_seconds":3600}]}`},
		{&w.red, fields{"tool_name": "acme.other", "agent_id": "Never.Seen", "actor_type": "human", "action_kind": "result", "unknown": 1}, policy.Input{Tool: "acme.other", Agent: "Never.Seen", ActorType: "human", ActionKind: "result"},
			`{"decision":"allow","policy_id":"pol-1","rule_id":"default","reason":"No rule matches; the policy's default is allow.","engine":"rules","policy_version":1,"policy_digest":"` + digest + `","input_digest":"%"}`},
		{&w.blue, fields{"tool_name": "acme.deny"}, policy.Input{Tool: "acme.deny"},
			`{"decision":"allow","policy_id":"none","rule_id":"none","reason":"No policy is active.","engine":"rules","input_digest":"%"}`},
	} {
		if c.input.Agent == "" {
			c.input.Agent, c.input.ActorType, c.input.ActionKind = c.m.agent.Agent, "agent", "tool_call"
		}
		a := w.post(evaluatePath, c.m.token, w.question(c.m, c.change))
		want := strings.Replace(c.want, "%", policy.InputDigest(c.input).String(), 1)
		if a.Code != 200 || a.Body.String() != want {
			t.Errorf("%v: got %d %s, want %s", c.change, a.Code, a.Body, want)
		}
		if got := a.Header().Get("Service-Version"); got != ingest.Version {
			t.Errorf("got Service-Version %q", got)
		}
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
}

// Each bad question has one defect or, to test the order of the checks, also every later defect.
func TestEvaluateRefused(t *testing.T) {
	const (
		missing  = "Missing organization_id, agent_id, or tool_name"
		mismatch = "Organization mismatch for API key"
		badTool  = "tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters"
		badAgent = "agent_id must match [A-Za-z0-9._-]{1,128}"
	)
	w := newWorld(t)
	before := w.sizes()
	for _, c := range []struct {
		change  fields
		status  int
		message string
	}{
		{fields{"organization_id": nil}, 422, missing},
		{fields{"agent_id": nil}, 422, missing},
		{fields{"tool_name": nil}, 422, missing},
		{fields{"organization_id": ""}, 422, missing},
		{fields{"agent_id": ""}, 422, missing},
		{fields{"tool_name": ""}, 422, missing},
		{fields{"organization_id": 7}, 422, missing},
		{fields{"agent_id": []string{"a"}}, 422, missing},
		{fields{"tool_name": true}, 422, missing},
		{fields{"organization_id": w.blue.id.String(), "tool_name": nil}, 422, missing},
		{fields{"organization_id": w.blue.id.String(), "agent_id": "a b", "tool_name": "."}, 403, mismatch},
		{fields{"organization_id": "red"}, 403, mismatch},
		{fields{"agent_id": "a b", "tool_name": ".", "payload": 1}, 422, badAgent},
		{fields{"agent_id": strings.Repeat("a", 129)}, 422, badAgent},
		{fields{"tool_name": ".", "payload": 1}, 422, badTool},
		{fields{"tool_name": "a..b"}, 422, badTool},
		{fields{"tool_name": "a b"}, 422, badTool},
		{fields{"tool_name": strings.Repeat("a", 257)}, 422, badTool},
		{fields{"payload": 1, "actor_type": ""}, 422, "payload must be an object"},
		{fields{"payload": []int{}}, 422, "payload must be an object"},
		{fields{"payload": json.RawMessage("null")}, 422, "payload must be an object"},
		{fields{"actor_type": "", "action_kind": ""}, 422, "actor_type must match [a-z][a-z0-9_]{0,63}"},
		{fields{"actor_type": "Agent"}, 422, "actor_type must match [a-z][a-z0-9_]{0,63}"},
		{fields{"actor_type": strings.Repeat("a", 65)}, 422, "actor_type must match [a-z][a-z0-9_]{0,63}"},
		{fields{"action_kind": 1}, 422, "action_kind must match [a-z][a-z0-9_]{0,63}"},
		{fields{"action_kind": "9a"}, 422, "action_kind must match [a-z][a-z0-9_]{0,63}"},
		{fields{"action_kind": "ledger_run"}, 422, "An action_kind that begins with ledger_ is reserved for the server"},
	} {
		w.expect(w.post(evaluatePath, w.red.token, w.question(&w.red, c.change)), c.status, c.message)
	}
	good := w.question(&w.red, nil)
	for _, c := range []struct {
		token, body string
		headers     []string
		status      int
		message     string
	}{
		{"", strings.Repeat("x", 300<<10), []string{"Content-Type: text/csv", "Service-Version: x"}, 401, "Invalid ingest API key"},
		{"apl_live_x", good, nil, 401, "Invalid ingest API key"},
		{w.red.token, strings.Repeat("x", 300<<10), []string{"Content-Type: text/csv", "Service-Version: x"}, 413, "The body is too large"},
		{w.red.token, "x", []string{"Content-Type: text/csv", "Service-Version: x"}, 415, "Content-Type must be application/json"},
		{w.red.token, "x", []string{"Service-Version: x"}, 422, "Service-Version is not known; known versions: 2026-05-18"},
		{w.red.token, "[]", nil, 422, "The body must be a JSON object"},
		{w.red.token, good + "{}", nil, 422, "The body has data after its JSON value: send one value"},
	} {
		a := w.post(evaluatePath, c.token, c.body, c.headers...)
		w.expect(a, c.status, c.message)
		if challenge := a.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (c.status == 401) {
			t.Errorf("%d: got WWW-Authenticate %q", c.status, challenge)
		}
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
}

func TestEvaluateFailsClosed(t *testing.T) {
	rules := &brittle{}
	w := newWorld(t, func(o *ingest.Options) { rules.ActiveSource, o.Policies = o.Policies, rules })
	rules.broken.Store(true)
	w.expect(w.post(evaluatePath, w.red.token, w.question(&w.red, nil)), 503, "The policy can't be read")
}
