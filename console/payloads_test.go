package console_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/account"
)

// canary is a text of payloads. Answers have it only where a role may read it.
const canary = "canary-7f3a"

// TestSearchByRole looks for the text of payloads, which finds their events only where the role may read them.
// What answers show is in the table of cmd/agentledger.
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
