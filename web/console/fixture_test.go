package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// requireApproval gives an organization a policy under which approvers decide on refunds.
func requireApproval(p *servicetest.Person, quorum int, reason string) {
	document := map[string]any{"policy_id": "p", "name": "Refunds & co", "rules": []any{map[string]any{
		"rule_id": "refunds", "tool": "acme.**", "decision": "allow_with_obligation", "reason": reason,
		"when": `payload != {"n": -1}`, "requires": []string{},
		"obligations": []any{map[string]any{"type": "human_approval", "approvals": quorum}}}}}
	p.Call(http.MethodPost, "/v1/console/policies", document, nil)
	p.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
}

// want fails if an answer has another status or lacks a text.
func want(t *testing.T, what string, got servicetest.Answer, status int, texts ...string) {
	t.Helper()
	if got.Status != status {
		t.Errorf("%s: got %d, want %d: %s", what, got.Status, status, got.Body)
		return
	}
	for _, text := range texts {
		if !strings.Contains(got.Body, text) {
			t.Errorf("%s: the page lacks %q: %s", what, text, got.Body)
		}
	}
}

// wantNot fails if an answer contains a text.
func wantNot(t *testing.T, what string, got servicetest.Answer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(got.Body, text) {
			t.Errorf("%s: the page contains %q: %s", what, text, got.Body)
		}
	}
}

// section returns the part of a page from an id to the end of its element, which has the given name.
func section(body, id, element string) string {
	_, after, _ := strings.Cut(body, `id="`+id+`"`)
	part, _, _ := strings.Cut(after, "</"+element+">")
	return part
}
