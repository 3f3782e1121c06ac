package console_test

import (
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
)

// Acts have what a tool's record may have of their calls, for roles that read payloads, and as long as the envelope is there.
func TestIdentifiers(t *testing.T) {
	w := newWorld(t)
	w.guarded(red, 1, id.Allow, "")
	w.guarded(blue, 2, id.Allow, "ok")
	who := w.first[red]
	w.sendDecided(red, "act-1-result", map[string]any{"agent_id": who.Agent, "key_id": who.Key, "tool_name": "acme.refund", "parent_event_id": "act-1",
		"payload": map[string]any{"phase": "result", "call_id": "act-1", "status": "ok", "grant_nonce": "00112233445566778899aabbccddeeff"}},
		event.Policy{Effective: id.Allow, Intent: "act-1", PolicyID: "p", PolicyVersion: 1, RuleID: "r", Engine: "rules"})
	list := func(query, role string) map[string]any {
		t.Helper()
		acts := w.call(200, "GET", "/acts?"+query, "", as(role))["acts"].([]any)
		if len(acts) != 1 {
			t.Fatalf("%s sees %v", role, acts)
		}
		return acts[0].(map[string]any)
	}
	if found := list("", "red-auditor")["identifiers"]; found != nil {
		t.Errorf("not asked for, got %v", found)
	}
	s, err := w.Ledgers.State(t.Context(), red)
	if err != nil {
		t.Fatal(err)
	}
	action, err := grant.NewAction(s.Identity().Organization, who.Agent, "acme.refund", []byte(`{"phase":"intent","call_id":"act-1","amount":1}`))
	if err != nil {
		t.Fatal(err)
	}
	const input = "c2b11e657e12fd177359627ca89412018e2274d0873cfbfcf1fc50f685582e9e" // of {"amount":1}
	want := fmt.Sprint(map[string]any{"call_id": "act-1", "input_digest": input, "action_digest": action.Digest().String(),
		"grant_nonce": "00112233445566778899aabbccddeeff"})
	if got := fmt.Sprint(list("identifiers=1", "red-auditor")["identifiers"]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := list("identifiers=1", "blue-owner")["identifiers"].(map[string]any); got["call_id"] != "act-2" || got["grant_nonce"] != nil {
		t.Errorf("blue: got %v", got)
	}
	for _, role := range []string{"red-member", "red-approver"} {
		w.refuses(role, w.request("GET", "/acts?identifiers=1", "", as(role)), 403, "Your role does not allow this")
	}
	w.refuses("another value", w.request("GET", "/acts?identifiers=yes", ""), 422, "identifiers must be 1")
	w.refuses("CSV", w.request("GET", "/acts?identifiers=1&format=csv", ""), 422, "identifiers is not allowed with format=csv")
}
