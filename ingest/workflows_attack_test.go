package ingest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// All run routes check the request before they look for the run, and only the run's key finds it.
func TestRunAdmission(t *testing.T) {
	for _, prefix := range prefixes {
		w := newWorld(t)
		path := strings.Replace(w.startRun(&w.red, runBody), prefixes[0], prefix, 1)
		events := w.ingestKey(&w.red, org.WantedKey{Scopes: 1 << org.ScopeEvents})
		another := w.ingestKey(&w.red, org.WantedKey{Scopes: 1 << org.ScopeWorkflows})
		routes := []struct{ method, path, body string }{
			{"POST", prefix + "/runs", runBody}, {"GET", path, ""}, {"POST", path + "/steps", stepBody}, {"POST", path + "/complete", endBody},
		}
		for _, r := range routes {
			w.expect(w.do(r.method, r.path, "nobody", r.body), 401, "Invalid API key")
			w.expect(w.do(r.method, r.path, events, r.body), 403, "The ingest key does not have the scope workflows")
			w.expect(w.do(r.method, r.path, w.red.token, r.body, "Service-Version: 2020-01-01"), 422, "Service-Version is not known; known versions: 2026-05-18")
			if r.path != prefix+"/runs" {
				for name, token := range map[string]string{"another key": another, "another organization": w.blue.token} {
					if a := w.do(r.method, r.path, token, r.body); a.Code != 404 || a.Body.String() != `{"error":"Not found"}` {
						t.Errorf("%s %s by %s: got %d %s", r.method, r.path, name, a.Code, a.Body)
					}
				}
				w.expect(w.do(r.method, strings.Replace(r.path, "run_0", "run_1", 1), w.red.token, r.body), 404, "Not found")
			}
			if r.method == "GET" {
				continue
			}
			w.expect(w.do(r.method, r.path, w.red.token, r.body, "Content-Type: text/plain"), 415, "Content-Type must be application/json")
			w.expect(w.do(r.method, r.path, w.red.token, strings.Repeat("x", 9<<20)), 413, "The body is too large")
		}
		if got := w.State(t, w.red.tenant).Size(); got != 5 { // another key was made twice
			t.Errorf("size: got %d, want 5", got)
		}
		no := false
		w.change(&w.red, org.Patch{Active: &no})
		for _, r := range routes {
			w.expect(w.do(r.method, r.path, w.red.token, r.body), 403, "The organization is inactive")
		}
	}
}

// A key that is restricted to some agents must name one of them.
func TestRunOfAKeyForSomeAgents(t *testing.T) {
	w := newWorld(t)
	w.enable(&w.red)
	token := w.ingestKey(&w.red, org.WantedKey{Scopes: org.AllScopes, Agents: []id.Agent{w.red.agent.Agent}})
	path := prefixes[0] + "/runs"
	w.expect(w.post(path, token, runBody), 403, "The ingest key is not for this agent")
	w.expect(w.post(path, token, with(runBody, `"agent_id":"agt_other"`)), 403, "The ingest key is not for this agent")
	a := w.post(path, token, with(runBody, `"agent_id":"`+string(w.red.agent.Agent)+`"`))
	w.expect(a, 201, "")
	w.expect(w.post(path+"/"+a.fields["run_id"].(string)+"/steps", token, stepBody), 201, "")
	if r := w.record(&w.red); r.Signer != event.SignerBridge || r.AgentID != w.red.agent.Agent || r.Custody != event.CustodyServer {
		t.Errorf("record: got %+v", r)
	}
}

// An agent cannot pass for the bridge: the names are reserved for the server, and anything else in its envelope is
// only the agent's claim.
func TestAgentClaimsToBeTheBridge(t *testing.T) {
	w := newWorld(t)
	started := w.post(prefixes[0]+"/runs", w.red.token, runBody)
	run, bridge := started.fields["run_id"].(string), started.fields["agent_id"].(string)
	path := prefixes[0] + "/runs/" + run
	w.expect(w.post(path+"/steps", w.red.token, stepBody), 201, "")
	step := w.record(&w.red)
	claims := fields{"actor_type": "system", "trace_id": run, "run_id": run, "step_key": "b", "attempt": 1, "step_status": "succeeded"}
	forged := func(more fields) fields {
		f := w.unsigned(&w.red, "forged", claims)
		for k, v := range more {
			f[k] = v
		}
		return f
	}
	w.expect(w.send(&w.red, w.signed(forged(fields{"key_id": string(step.KeyID)}), w.red.agent.Private)), 422, "A key_id that begins with system_ or bridge_ is reserved for the server")
	w.expect(w.send(&w.red, w.signed(forged(fields{"agent_id": bridge}), w.red.agent.Private)), 422, "Unknown signing key")
	w.expect(w.send(&w.red, w.signed(forged(fields{"event_id": string(step.EventID)}), w.red.agent.Private)), 422, "event_id was used with another event")
	w.expect(w.send(&w.red, w.signed(forged(fields{"action_kind": "ledger_run"}), w.red.agent.Private)), 422, "An action_kind that begins with ledger_ is reserved for the server")
	if _, err := w.agents.RegisterKey(t.Context(), w.red.tenant, "acc", id.Agent(bridge), agent.Registration{PublicKey: w.red.agent.Private.Public().String(), Proof: base64Of(make([]byte, 64))}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a key for the bridge agent: got %v", err)
	}
	w.expect(w.send(&w.red, w.signed(forged(nil), w.red.agent.Private)), 201, "")
	if r := w.record(&w.red); r.Signer != event.SignerAgent {
		t.Errorf("record: got signer %s", r.Signer)
	}
	ended := w.post(path+"/complete", w.red.token, endBody)
	if ended.fields["steps_recorded"] != 1.0 || ended.fields["events_recorded"] != 2.0 {
		t.Errorf("the run counts what an agent claims: %s", ended.Body)
	}
	var names []string
	for _, e := range w.do("GET", path, w.red.token, "").fields["events"].([]any) {
		names = append(names, e.(map[string]any)["event_id"].(string))
	}
	if slices.Contains(names, "forged") {
		t.Errorf("the run lists what an agent claims: %v", names)
	}
}
