package console_test

import (
	"strings"
	"testing"
)

// A document is checked as if it were activated, and is not stored.
func TestCheckPolicy(t *testing.T) {
	w := newWorld(t)
	const test = `{"name":"large","input":{"tool_name":"acme.pay","payload":{"amount":7}},"expect":{"decision":"deny"}}`
	rule := func(when string) string {
		return `{"policy_id":"spending","name":"n","rules":[{"rule_id":"cap","tool":"acme.pay","decision":"deny","when":"` + when + `"}],"tests":[` + test + `]}`
	}
	for name, tc := range map[string]struct{ document, want string }{
		"passes":   {rule("payload.amount > 5"), `{"policy_id":"spending","rules":1,"tests":1,"failures":[],"quorum_unreachable":null}`},
		"misspelt": {rule("payload.amuont > 5"), `{"policy_id":"spending","rules":1,"tests":1,"failures":[{"test":0,"name":"large","why":"*"}],"quorum_unreachable":null}`},
		"nameless": {`{"name":"n"}`, `{"policy_id":null,"rules":0,"tests":0,"failures":[],"quorum_unreachable":null}`},
	} {
		got := w.call(200, "POST", "/policies/check", tc.document, as("red-policy_editor"))
		for _, f := range got["failures"].([]any) {
			if why := f.(map[string]any)["why"].(string); !strings.Contains(why, "could not be evaluated") && !strings.Contains(why, "error") {
				t.Errorf("%s: got %q", name, why)
			}
			f.(map[string]any)["why"] = "*"
		}
		written := got["document"].(map[string]any)
		if len(written["rules"].([]any)) != int(got["rules"].(float64)) || written["default"] != "allow" {
			t.Errorf("%s: got document %v", name, written)
		}
		delete(got, "document")
		equal(t, name, got, tc.want)
	}
	w.call(404, "GET", "/policies/spending", "")
	w.call(422, "POST", "/policies/check", `{"name":"n","rules":[{"rule_id":"r","tool":"a","decision":"perhaps"}]}`)
	w.call(422, "POST", "/policies/check", `{"name":"n","rules":[{"rule_id":"r","tool":"a","decision":"deny","when":"payload.x ="}]}`)
	w.call(422, "POST", "/policies/check", `{"name":"n","version":1}`)
	w.call(403, "POST", "/policies/check", `{"name":"n"}`, as("red-approver"))
}
