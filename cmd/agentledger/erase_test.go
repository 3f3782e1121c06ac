package main

import (
	"strings"
	"testing"
)

// An owner erases with aps, follows the progress, and sets a legal hold. The question of an approval is shown without
// its payload afterwards.
func TestErasuresInATerminal(t *testing.T) {
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
	if out, exit := aps(red, "approvals", "show", a.ID); exit != 0 || !strings.Contains(out, `payload   {"amount`) {
		t.Fatalf("before: status %d, %s", exit, out)
	}
	agent := string(r.question().Agent)
	for _, tt := range []struct {
		org  foundedOrganization
		args []string
		exit int
		want string
	}{
		{red, []string{"erase", "--agent", agent, "--reason", "mia_asked"}, 1, "422 reason must be one of data_subject_request, "},
		{red, []string{"erase", "evt", "--agent", agent, "--reason", "other"}, 2, "either an event or flags"},
		{red, []string{"erase", "nothing", "--reason", "other"}, 1, "404 Not found"},
		{red, []string{"retention", "--hold", "on"}, 0, "envelopes are kept for ever, legal hold: true"},
		{red, []string{"erase", "--agent", agent, "--reason", "other"}, 1, "409 The organization has a legal hold"},
		{red, []string{"retention", "--hold", "off", "--days", "400"}, 0, "envelopes are kept 400 days, legal hold: false"},
		{blue, []string{"retention"}, 0, "envelopes are kept for ever, legal hold: false"},
		{red, []string{"erase", "--agent", agent, "--reason", "test_data", "--wait"}, 0, "done     test_data  by agent_id  0 envelopes and 1 approval erased"},
		{red, []string{"erasures", "list"}, 0, "test_data"},
		{blue, []string{"erasures", "list"}, 0, ""},
		{red, []string{"approvals", "show", a.ID}, 0, "payload   \n"},
	} {
		out, exit := aps(tt.org, tt.args...)
		if exit != tt.exit || !strings.Contains(out, tt.want) || tt.want == "" && out != "" {
			t.Errorf("%s: %v: status %d, %s", tt.org.Slug, tt.args, exit, out)
		}
	}
	listed, _ := aps(red, "erasures", "list")
	name := strings.Fields(listed)[0]
	if out, exit := aps(red, "erasures", "show", name); exit != 0 || !strings.Contains(out, `"state": "done"`) {
		t.Errorf("show: status %d, %s", exit, out)
	}
	if out, exit := aps(blue, "erasures", "show", name); exit != 1 || !strings.Contains(out, "404 Not found") {
		t.Errorf("the other organization: status %d, %s", exit, out)
	}
}
