package main

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

func TestEvaluate(t *testing.T) {
	s := fakeservice.Start(t, 2)
	mine, other := s.Organization(0), s.Organization(1)
	mine.Rules = map[id.Tool]id.Decision{"shop.refunds.create": id.AllowWithObligation, "crm.customers.export": id.Deny}
	for name, tc := range map[string]struct {
		o      *fakeservice.Organization
		args   []string
		status int
		want   string
	}{
		"obligation": {mine, []string{"--tool", "shop.refunds.create", "--payload", `{"amount_usd":900}`}, 4,
			"allow_with_obligation\npolicy      pol_1 version 3, rule rule_shop.refunds.create\nreason      rule for shop.refunds.create, 1 members\nobligation  human_approval: approvals 2, within 3600 s\n"},
		"deny": {mine, []string{"--tool", "crm.customers.export"}, 3,
			"deny\npolicy      pol_1 version 3, rule rule_crm.customers.export\nreason      rule for crm.customers.export, 0 members\n"},
		"deny, JSON": {mine, []string{"--tool", "crm.customers.export", "--json"}, 3,
			`{"decision":"deny","policy_id":"pol_1","rule_id":"rule_crm.customers.export","reason":"rule for crm.customers.export, 0 members","engine":"rules","policy_version":3,"policy_digest":"` + "01" + strings.Repeat("0", 62) + `","input_digest":"02` + strings.Repeat("0", 62) + `"}` + "\n"},
		"the other organization's": {other, []string{"--tool", "crm.customers.export"}, 0, "allow\npolicy      none, rule none\nreason      No policy is active\n"},
		"JSON": {other, []string{"--tool", "crm.customers.export", "--json"}, 0,
			`{"decision":"allow","policy_id":"none","rule_id":"none","reason":"No policy is active","engine":"rules"}` + "\n"},
		"payload no JSON":   {mine, []string{"--tool", "a.b", "--payload", `{`}, 2, ""},
		"payload no object": {mine, []string{"--tool", "a.b", "--payload", `[]`}, 2, ""},
		"no tool":           {mine, nil, 2, ""},
		"mixed up":          {mine, []string{"--tool", "a.b", "--org", other.ID.String()}, 1, ""},
	} {
		flags := []string{"--org", tc.o.ID.String(), "--agent", string(tc.o.Agent)}
		got := aps(t, "", with("evaluate", at(s, tc.o), flags, tc.args)...)
		if got.status != tc.status || got.out != tc.want || tc.status > 2 && got.report != "" {
			t.Errorf("%s: got %+v", name, got)
		}
		if warned := strings.Contains(got.report, "no policy is active"); warned != (tc.o == other && tc.status == 0) {
			t.Errorf("%s: warned %t: %s", name, warned, got.report)
		}
	}
}

// The report names an agent without an active key. The decision and the exit code do not change.
func TestEvaluateUnknownAgent(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(0)
	o.Rules = map[id.Tool]id.Decision{"crm.customers.export": id.Deny}
	got := aps(t, "", with("evaluate", at(s, o), []string{"--org", o.ID.String(), "--agent", "agt_misspelt", "--tool", "crm.customers.export"})...)
	if got.status != 3 || !strings.HasPrefix(got.out, "deny\n") || !strings.Contains(got.report, "no agent agt_misspelt with an active key") {
		t.Errorf("got %+v", got)
	}
}
