package main

import (
	"strings"
	"testing"
)

// A member reads the log with aps in a terminal, and the operator has its index rebuilt.
func TestEventsInATerminal(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	r := newRefunder(t, p, red)
	r.requireApproval(t)
	a, err := r.client.AskApproval(t.Context(), r.question())
	if err != nil {
		t.Fatal(err)
	}
	aps := func(org foundedOrganization, args ...string) (string, int) {
		environment := []string{"APS_URL=" + p.main, "APS_ID_URL=" + p.identity, "APS_EMAIL=ops@" + string(org.Slug) + ".example", "APS_PASSWORD=" + testPassword}
		return commandWith(t, environment, "aps", args...)
	}
	asked, _ := aps(red, "events", "list", "--kind", "ledger_approval")
	fields := strings.Fields(asked)
	if len(fields) != 8 {
		t.Fatalf("got %s", asked)
	}
	name, index := fields[7], fields[0]
	shown, _ := aps(red, "--json", "events", "show", name)
	_, rest, _ := strings.Cut(shown, `"trace_id":"`)
	trace, _, _ := strings.Cut(rest, `"`)
	for _, tt := range []struct {
		org  foundedOrganization
		args []string
		exit int
		want string
	}{
		{red, []string{"events", "list", "--limit", "1"}, 0, "ledger_approval"},
		{red, []string{"events", "list", "--signer", "system", "--oldest", "--limit", "0"}, 0, "ledger_policy_activated"},
		{red, []string{"events", "list", "-q", strings.ToUpper(a.ID)}, 0, name},
		{blue, []string{"events", "list", "--kind", "ledger_approval"}, 0, ""},
		{red, []string{"events", "list", "--tool", "a..b"}, 2, "--tool: expected the name of a tool, or a pattern such as acme.**"},
		{red, []string{"events", "show", index}, 0, `"event_id": "` + name + `"`},
		{red, []string{"events", "show", name}, 0, `"ok": true`},
		{blue, []string{"events", "show", name}, 1, "404 Not found"},
		{red, []string{"events", "tail", "--after", "0", "--kind", "ledger_approval", "--count", "1"}, 0, name},
		{red, []string{"traces", "list"}, 0, trace},
		{red, []string{"traces", "show", trace}, 0, name},
		{red, []string{"--json", "traces", "show", trace}, 0, `"parent_event_id":null`},
		{blue, []string{"traces", "show", trace}, 1, "404 Not found"},
		{red, []string{"audit", "--kind", "ledger_approval"}, 0, "asked for approval " + a.ID},
		{red, []string{"audit", "--actor", "nobody"}, 0, ""},
		{red, []string{"audit", "--kind", "tool_call"}, 1, "422 kind must begin with ledger_"},
		{red, []string{"--json", "audit", "--kind", "ledger_approval"}, 0, `"proof":"/v1/public/orgs/` + string(red.Slug) + `/verify/ledger_approval:`},
		{red, []string{"audit", "--oldest", "--limit", "1", "--csv"}, 0, "log_index,event_id,event_hash,received_at,kind,sentence,"},
		{blue, []string{"audit", "--kind", "ledger_approval"}, 0, ""},
		{red, []string{"events", "list", "--kind", "ledger_approval", "--csv"}, 0, "\r\n" + index + "," + name + ","},
		{red, []string{"events", "list", "--kind", "ledger_approval", "--ndjson"}, 0, `"event_id":"` + name + `"`},
		{red, []string{"traces", "list", "--csv", "--limit", "1"}, 0, "log_index,trace_id,first_at,"},
		{red, []string{"events", "list", "--csv", "--ndjson"}, 2, "can't be used together"},
	} {
		out, exit := aps(tt.org, tt.args...)
		if exit != tt.exit || !strings.Contains(out, tt.want) || tt.want == "" && out != "" {
			t.Errorf("%s: %v: status %d, %s", tt.org.Slug, tt.args, exit, out)
		}
	}
	secret := []string{"AGENTLEDGER_PLATFORM_SECRET=" + testSecret}
	reindex := []string{"reindex", "--server", p.identity, "--slug"}
	if out, exit := commandWith(t, secret, "agentledger", append(reindex, "red")...); exit != 0 {
		t.Errorf("reindex: status %d, %s", exit, out)
	}
	if out, exit := commandWith(t, secret, "agentledger", append(reindex, "green")...); exit == 0 || !strings.Contains(out, "Not found") {
		t.Errorf("reindex of an unknown organization: status %d, %s", exit, out)
	}
}
