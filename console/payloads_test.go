package console_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// canary is a text of payloads. Answers have it only where a role may read it.
const canary = "canary-7f3a"

// payloadRoutes is the table of the routes that show payloads, with the permission for them. Packs are
// for those who may read payloads, so no other role gets an answer.
func payloadRoutes() map[string]account.Permission {
	return map[string]account.Permission{
		"GET /events/{event}":       account.ReadPayloads,
		"GET /approvals":            account.ReadApprovalPayloads,
		"GET /approvals/{approval}": account.ReadApprovalPayloads,
		"GET /evidence.zip":         account.ReadPayloads,
	}
}

// Each route that reads is asked with each role, with a token of each role, without a session and by the
// other organization. The text of payloads is in the answers of the table and in no other.
func TestPayloadsByRole(t *testing.T) {
	w := newWorld(t)
	w.sendOwn(red, "evt-canary", map[string]any{"trace_id": "trc-canary", "payload": map[string]any{"text": canary}})
	first := w.ask(red)
	asked, _, err := w.approvals.Ask(t.Context(), red, approval.Question{Agent: w.first[red].Agent, Tool: "acme.refund",
		Payload: []byte(`{"amount":8,"text":"` + canary + `"}`), Trace: "trc-1", IngestKeyID: first.IngestKeyID})
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("/v1/console", "", "{key}", first.IngestKeyID, "{agent}", string(first.Agent), "{policy}", "p",
		"{approval}", string(asked.ID), "{run}", "r", "{webhook}", "w", "{token}", "k", "{event}", "evt-canary", "{trace}", "trc-canary",
		"{erasure}", "e")
	tokens := map[account.Role]string{}
	for _, role := range account.Roles()[1:] { // no token is an owner
		_, tokens[role] = w.token("red-"+string(role), string(role))
	}
	wanted := payloadRoutes()
	for _, route := range w.routed {
		if route.Method != "GET" {
			continue
		}
		name := "GET " + strings.TrimPrefix(route.Pattern, "/v1/console")
		permission, shows := wanted[name]
		delete(wanted, name)
		paths := []string{names.Replace(route.Pattern)}
		switch name {
		case "GET /evidence.zip":
			paths[0] += "?envelopes=1"
		case "GET /events", "GET /traces", "GET /audit":
			paths = append(paths, paths[0]+"?format=csv", paths[0]+"?format=ndjson")
		}
		for _, path := range paths {
			has := func(change func(*http.Request)) bool {
				return bytes.Contains([]byte(w.do(w.request("GET", path, "", change)).text), []byte(canary))
			}
			for _, role := range account.Roles() {
				if got, want := has(as("red-"+string(role))), shows && role.May(permission); got != want {
					t.Errorf("%s as %s: shows the payload: %v, want %v", path, role, got, want)
				}
				if got, want := has(bearer(tokens[role])), shows && role.May(permission) && role != account.Owner; got != want {
					t.Errorf("%s with a token of %s: shows the payload: %v, want %v", path, role, got, want)
				}
				if has(as("blue-" + string(role))) {
					t.Errorf("%s as %s of the other organization shows the payload", path, role)
				}
			}
			if has(as("")) {
				t.Errorf("%s without a session shows the payload", path)
			}
		}
	}
	for name := range wanted {
		t.Errorf("%s is no route", name)
	}
	w.checkSearch(t)
}

// checkSearch looks for the text of payloads, which finds their events only where the role may read them.
func (w *world) checkSearch(t *testing.T) {
	t.Helper()
	for _, role := range account.Roles() {
		var found struct {
			Events []struct {
				ID string `json:"event_id"`
			} `json:"events"`
		}
		g := w.do(w.request("GET", "/events?q="+canary, "", as("red-"+string(role))))
		if err := json.Unmarshal([]byte(g.text), &found); err != nil {
			t.Fatal(err)
		}
		got := len(found.Events) == 1 && found.Events[0].ID == "evt-canary"
		if want := slices.Contains([]account.Role{account.Owner, account.Admin, account.Auditor}, role); got != want || !want && len(found.Events) > 0 {
			t.Errorf("search as %s: got %v, want a hit: %v", role, found.Events, want)
		}
	}
}
