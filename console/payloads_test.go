package console_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/account"
)

// canary is a text in payloads. Answers may contain it only for roles that may read payloads.
const canary = "canary-7f3a"

// TestSearchByRole searches for the text of payloads, which must find events only for roles that may read payloads. A
// test of cmd/agentledger checks what answers show.
func TestSearchByRole(t *testing.T) {
	w := newWorld(t)
	w.sendOwn(red, "evt-canary", map[string]any{"trace_id": "trc-canary", "payload": map[string]any{"text": canary}})
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
