package policy_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

// A test may state whether the deciding rule can be evaluated.
func TestTestOfARuleError(t *testing.T) {
	const rules = `{"policy_id":"p","version":1,"name":"n","rules":[
		{"rule_id":"r","tool":"a.*","decision":"deny","when":"payload.amount > 5"}],"tests":[`
	for expect, want := range map[string]string{
		`{"decision":"deny"}`:                             "",
		`{"decision":"deny","error":true}`:                "",
		`{"decision":"deny","error":null}`:                "",
		`{"decision":"deny","rule_id":"r","error":false}`: "because of a rule error",
	} {
		misspelt := `{"name":"t","input":{"tool_name":"a.b","payload":{"amuont":6}},"expect":` + expect + `}`
		p, err := policy.Parse([]byte(rules + misspelt + "]}"))
		if err != nil {
			t.Fatal(err)
		}
		failures, err := compile(t, p).RunTests(t.Context(), p.Tests)
		if err != nil || (len(failures) > 0) != (want != "") || want != "" && !strings.Contains(failures[0].Why, want) {
			t.Errorf("%s: got %v, %v; want %q", expect, failures, err, want)
		}
		again, err := policy.ParseStored(p.Document())
		if err != nil || string(again.Document()) != string(p.Document()) || again.Digest() != p.Digest() {
			t.Errorf("%s: got %s, %v", expect, again.Document(), err)
		}
	}
	fine := rules + `{"name":"t","input":{"tool_name":"a.b","payload":{"amount":6}},"expect":{"decision":"deny","error":true}}]}`
	p, err := policy.Parse([]byte(fine))
	if err != nil {
		t.Fatal(err)
	}
	failures, err := compile(t, p).RunTests(t.Context(), p.Tests)
	if err != nil || len(failures) != 1 || !strings.Contains(failures[0].Why, "got deny by r without a rule error") {
		t.Errorf("got %v, %v", failures, err)
	}
}
