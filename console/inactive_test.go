package console_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

const inactive = "The organization is inactive: its console is read-only, except for revoking keys"

// writeRoutes returns the console's routes in openapi.json except GET, as "METHOD path below /v1/console".
func writeRoutes(t *testing.T) (routes []string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(edge.OpenAPI()), &document); err != nil {
		t.Fatal(err)
	}
	methods := []string{"post", "put", "patch", "delete"}
	for path, item := range document.Paths {
		below, ok := strings.CutPrefix(path, "/v1/console")
		for method := range item {
			if ok && slices.Contains(methods, method) {
				routes = append(routes, strings.ToUpper(method)+" "+below)
			}
		}
	}
	slices.Sort(routes)
	return routes
}

// setActive does what the platform call does.
func (w *world) setActive(active bool) {
	w.t.Helper()
	if _, err := w.orgs.Change(w.t.Context(), red, sysevent.Operator, org.Patch{Active: &active}); err != nil {
		w.t.Fatal(err)
	}
}

func TestConsoleOfAnInactiveOrganizationIsReadOnly(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/agents", `{"agent_id":"desk"}`)
	w.call(201, "POST", "/policies", `{"policy_id":"p1","name":"P","rules":[]}`)
	made := w.call(201, "POST", "/ingest-keys", `{"name":"k"}`)["key"].(map[string]any)["key_id"].(string)
	keys := w.call(200, "GET", "/agents/desk/keys", "")["keys"].([]any)[0].(map[string]any)["key_id"].(string)
	token, _ := w.token("red-owner", "member")
	shared, _ := w.share("red-owner", "")
	deputy, body := w.deputy()
	w.call(200, "PUT", deputy, body)
	w.setActive(false)
	before := w.kinds(red)

	stays := map[string]struct { // calls allowed in an inactive organization
		path, body string
		status     int
	}{
		"DELETE /tokens/{tokenId}":                   {"/tokens/" + token, "", 204},
		"DELETE /shares/{shareId}":                   {"/shares/" + shared, "", 204},
		"DELETE /deputies/{membershipId}":            {deputy, "", 204},
		"DELETE /ingest-keys/{keyId}":                {"/ingest-keys/" + made, "", 204},
		"POST /agents/{agentId}/keys/{keyId}/revoke": {"/agents/desk/keys/" + keys + "/revoke", `{"reason":"leaked"}`, 200},
		"POST /policies/check":                       {"/policies/check", `{"name":"n"}`, 200},
		"POST /policies/{policyId}/simulate":         {"/policies/p1/simulate", `{"input":{"tool_name":"a.b"}}`, 200},
	}
	fill := strings.NewReplacer("{agentId}", "desk", "{keyId}", keys, "{policyId}", "p1", "{approvalId}", "apr_x", "{webhookId}", "whk_x")
	routes := writeRoutes(t)
	if len(routes) < 15 {
		t.Fatalf("got %d routes: %v", len(routes), routes)
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		if one, ok := stays[route]; ok {
			delete(stays, route)
			w.call(one.status, method, one.path, one.body)
			continue
		}
		for _, body := range []string{"", "{}", "no JSON"} {
			w.refuses(route, w.request(method, fill.Replace(path), body), 403, inactive)
		}
		if g := w.do(w.request(method, fill.Replace(path), "{}", as("blue-owner"))); g.status == http.StatusForbidden {
			t.Errorf("%s: the neighbour got %d %s", route, g.status, g.text)
		}
		if strings.HasSuffix(route, "/tokens") {
			continue // allowed to every role
		}
		w.refuses(route+", as a member", w.request(method, fill.Replace(path), "{}", as("red-member")), 403, "Your role does not allow this")
	}
	for route := range stays {
		t.Errorf("%s is not in the document", route)
	}
	if got := w.kinds(red)[len(before):]; len(got) != 5 {
		t.Errorf("changed while inactive: %v, want four revocations and the end of a deputy", got)
	}
	for _, path := range []string{"/agents", "/agents/desk/keys", "/policies", "/policies/p1", "/ingest-keys", "/approvals", "/runs", "/webhooks", "/witnesses", "/organization", "/organization/plan-usage", "/audit"} {
		w.call(200, "GET", path, "")
	}

	w.setActive(true)
	w.call(201, "POST", "/agents", `{"agent_id":"desk2"}`)
}
