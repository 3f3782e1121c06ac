package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// own overrides limits of an organization, as the operator does.
func (w *world) own(tenant id.Tenant, limits map[org.Limit]uint64) {
	w.t.Helper()
	patch := org.Patch{Limits: map[org.Limit]*uint64{}}
	for name, n := range limits {
		patch.Limits[name] = &n
	}
	if _, err := w.orgs.Change(context.Background(), tenant, sysevent.Operator, patch); err != nil {
		w.t.Fatal(err)
	}
}

// bounded checks the whole answer to a request that exceeds a limit.
func (w *world) bounded(what string, r *http.Request, status int, code, message string) {
	w.t.Helper()
	g := w.do(r)
	var body struct{ Error, Code string }
	err := json.Unmarshal([]byte(g.text), &body)
	if err != nil || g.status != status || body.Error != message || body.Code != code || (g.header.Get("Retry-After") != "") != (status == 429) {
		w.t.Errorf("%s: got %d %s (Retry-After %q), want %d %s %q", what, g.status, g.text, g.header.Get("Retry-After"), status, code, message)
	}
}

func TestNumbersOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.AgentsLimit: 2, org.IngestKeysLimit: 1, org.PoliciesLimit: 1, org.PolicyVersionsLimit: 1})
	w.call(201, "POST", "/agents", `{"agent_id":"desk"}`)
	w.call(201, "POST", "/ingest-keys", `{"name":"k","agents":["desk"]}`)
	w.call(201, "POST", "/policies", `{"policy_id":"p","name":"n"}`)
	w.call(200, "POST", "/policies/p/activate", ``)
	for what, tc := range map[string]struct{ method, path, body, message string }{
		"agent":          {"POST", "/agents", `{}`, "The organization has 2 agents, as many as its plan allows"},
		"ingest key":     {"POST", "/ingest-keys", `{"name":"k"}`, "The organization has 1 ingest key, as many as its plan allows: revoke one first"},
		"policy":         {"POST", "/policies", `{"name":"n"}`, "The organization has 1 policy, as many as its plan allows"},
		"policy version": {"PATCH", "/policies/p", `{"name":"m"}`, "The policy has 1 version, as many as the plan allows: create another policy"},
	} {
		w.bounded(what, w.request(tc.method, tc.path, tc.body), 409, "plan_limit", tc.message)
	}
	w.call(201, "POST", "/agents", `{}`, as("blue-owner"))
	w.call(201, "POST", "/ingest-keys", `{"name":"k"}`, as("blue-owner"))
	w.call(201, "POST", "/policies", `{"name":"n"}`, as("blue-owner"))
}

// A caller who makes changes too fast is told when to retry. Calls that revoke rights are never refused.
func TestPaceOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 4})
	made := w.call(201, "POST", "/agents", `{"agent_id":"desk"}`)["credentials"].(map[string]any)["key_id"].(string)
	key := w.call(201, "POST", "/ingest-keys", `{"name":"k"}`)["key"].(map[string]any)["key_id"].(string)
	w.call(201, "POST", "/policies", `{"policy_id":"p","name":"n"}`)
	w.call(201, "POST", "/agents/desk/keys", registration(red, "desk", "second", edkey.NewPrivate()))
	for what, tc := range map[string]struct{ method, path, body string }{
		"agent":            {"POST", "/agents", `{}`},
		"change of agent":  {"PATCH", "/agents/desk", `{"display_name":"d"}`},
		"key":              {"POST", "/agents/desk/keys", registration(red, "desk", "third", edkey.NewPrivate())},
		"ingest key":       {"POST", "/ingest-keys", `{"name":"k"}`},
		"change of key":    {"PATCH", "/ingest-keys/" + key, `{"name":"m"}`},
		"policy":           {"POST", "/policies", `{"name":"n"}`},
		"change of policy": {"PATCH", "/policies/p", `{"name":"m"}`},
		"activation":       {"POST", "/policies/p/activate", ``},
		"organization":     {"PATCH", "/organization", `{"name":"Red Inc."}`},
		"witnesses":        {"PUT", "/witnesses", `{"policy":"quorum none\n"}`},
		"view":             {"PUT", "/views", `{"name":"n","search":"x"}`},
		"columns":          {"PUT", "/columns", `{"columns":["amount_usd"]}`},
		"keys of tools":    {"PUT", "/tool-keys", `{"keys":["` + toolKey("did:web:payments.example", 1) + `"]}`},
		"coverage":         {"POST", "/coverage", standardCoverage},
	} {
		w.bounded(what, w.request(tc.method, tc.path, tc.body), 429, "rate_limited", "Too many changes: at most 4 in a minute")
	}
	w.call(204, "DELETE", "/ingest-keys/"+key, "")
	w.call(200, "POST", "/agents/desk/keys/"+made+"/revoke", "")
	w.call(200, "POST", "/agents/desk/keys/second/retire", "")
	w.call(204, "DELETE", "/policies/p", "")
	w.call(201, "POST", "/agents", `{}`, as("blue-owner"))
}

func TestPaceOfDeactivation(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 2})
	w.call(201, "POST", "/policies", `{"policy_id":"p","name":"n"}`)
	w.call(200, "POST", "/policies/p/activate", ``)
	w.bounded("deactivation", w.request("POST", "/policies/p/deactivate", ""), 429, "rate_limited", "Too many changes: at most 2 in a minute")
}

// Chosen witnesses stay in force if the change back is refused for its pace.
func TestPaceOfWitnesses(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1})
	w.call(200, "PUT", "/witnesses", `{"policy":"quorum none\n"}`)
	w.bounded("back", w.request("DELETE", "/witnesses", ""), 429, "rate_limited", "Too many changes: at most 1 in a minute")
}

func TestAgentsOfAnIngestKeyExist(t *testing.T) {
	w := newWorld(t)
	for what, name := range map[string]string{"unknown": "nobody", "blue's": string(w.first[blue].Agent)} {
		body := `{"name":"k","agents":["` + string(w.first[red].Agent) + `","` + name + `"]}`
		w.refuses(what, w.request("POST", "/ingest-keys", body), 422, "agents[1] is not an agent of the organization")
	}
}
