package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

func TestExplain(t *testing.T) {
	p := parse(t, `{"policy_id":"p","version":1,"name":"n","rules":[
		{"rule_id":"tool","tool":"acme.mail.*","decision":"deny"},
		{"rule_id":"agent","tool":"**","agents":["agt_9"],"decision":"deny"},
		{"rule_id":"when","tool":"acme.**","decision":"deny","when":"payload.amount > 100 && payload.order.currency == 'USD' || has(payload.vip)"},
		{"rule_id":"error","tool":"acme.**","decision":"deny","mode":"shadow","when":"payload.missing == 1"},
		{"rule_id":"mistyped","tool":"acme.**","decision":"allow_with_obligation","when":"payload.order > 1"},
		{"rule_id":"skipped","tool":"acme.**","decision":"allow","when":"payload.missing == 1"},
		{"rule_id":"limit","tool":"acme.**","decision":"deny","limit":{"limit_id":"l","count":true,"by":"tool","window_seconds":1,"max":1}},
		{"rule_id":"plain","tool":"acme.**","decision":"allow"}]}`)
	x, err := policy.Explain(t.Context(), p, at(`{"amount":50,"order":{"currency":"USD"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range x.Rules {
		got = append(got, fmt.Sprintf("%s %s %s", r.RuleID, r.Result, r.Why))
	}
	want := []string{"tool other_tool ", "agent other_agent ", "when unmatched ", "error failed payload.missing is missing", "mistyped failed no such overload: _>_",
		"skipped skipped payload.missing is missing", "limit limited ", "plain matched "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	steps := []policy.Step{
		{"payload.amount", "50"},
		{"payload.amount > 100", "false"},
		{"payload.order", `{"currency":"USD"}`},
		{"payload.order.currency", `"USD"`},
		{`payload.order.currency == "USD"`, "true"},
		{`payload.amount > 100 && payload.order.currency == "USD"`, "false"},
		{"has(payload.vip)", "false"},
		{`payload.amount > 100 && payload.order.currency == "USD" || has(payload.vip)`, "false"},
	}
	if !slices.Equal(x.Rules[2].Steps, steps) {
		t.Errorf("got %q\nwant %q", x.Rules[2].Steps, steps)
	}
	mistyped := x.Rules[4].Steps
	if last := mistyped[len(mistyped)-1]; last.Expression != "payload.order > 1" || !strings.HasPrefix(last.Value, "error: no such overload") {
		t.Errorf("got %q", mistyped)
	}
	if x.Rules[3].Steps != nil || len(x.Claims) != 1 {
		t.Errorf("got steps %q, claims %v", x.Rules[3].Steps, x.Claims)
	}
	if o := x.Settle(func(*policy.Claim) bool { return false }); o.RuleID != "mistyped" {
		t.Errorf("got %+v", o)
	}
}
