package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/agent"
)

// A disabled agent cannot do anything, and its stored events are replayed as before.
func TestSwitchedOffAgent(t *testing.T) {
	const off = `{"error":"The agent is switched off","code":"agent_inactive"}`
	w := newWorld(t)
	w.activate(&w.red, "p", `[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}]}]`)
	stored := w.envelope(&w.red, "evt-1", nil)
	w.send(&w.red, stored)
	set := func(active bool) {
		t.Helper()
		if _, err := w.agents.Change(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, agent.Patch{Active: &active}); err != nil {
			t.Fatal(err)
		}
	}
	question := fmt.Sprintf(`{"organization_id":"%s","agent_id":"%s","tool_name":"acme.refund"}`, w.red.id, w.red.agent.Agent)
	set(false)
	w.expectReplayed(w.send(&w.red, stored), "evt-1")
	before := w.sizes()
	for what, a := range map[string]answer{
		"event":    w.send(&w.red, w.envelope(&w.red, "evt-2", nil)),
		"evaluate": w.post(evaluatePath, w.red.token, question),
		"approval": w.post("/v1/ingest/approvals", w.red.token, question),
	} {
		if a.Code != 422 || strings.TrimSpace(a.Body.String()) != off {
			t.Errorf("%s: got %d %s, want 422 %s", what, a.Code, a.Body.String(), off)
		}
	}
	lines := w.do("POST", eventsPath+"/batch", w.red.token, w.envelope(&w.red, "evt-3", nil)+"\n", "Content-Type: application/x-ndjson")
	if want := `{"status_code":422,` + off[1:]; lines.Code != 200 || strings.TrimSpace(lines.Body.String()) != want {
		t.Errorf("batch: got %d %s, want %s", lines.Code, lines.Body.String(), want)
	}
	if after := w.sizes(); after != before {
		t.Errorf("got sizes %v, want %v", after, before)
	}
	w.mustCreate(&w.blue, "evt-2", nil)
	set(true)
	w.mustCreate(&w.red, "evt-2", nil)
}
