package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A member signs in once with aps and uploads policies from a folder to the organization.
func TestPoliciesFromAFolder(t *testing.T) {
	p := startProcess(t, t.TempDir())
	p.found(t.Context(), "red", nil)
	p.found(t.Context(), "blue", nil)
	home := t.TempDir()
	kept := filepath.Join(home, "agentledger", "sessions.json")
	aps := func(email string, args ...string) (string, int) {
		return commandWith(t, []string{"APS_URL=" + p.main, "APS_EMAIL=" + email, "APS_PASSWORD=" + testPassword, "XDG_CONFIG_HOME=" + home}, "aps", args...)
	}
	write := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const rule = `{"rule_id":"r","tool":"acme.refund","decision":"deny","when":"payload.amount > 5"}`
	refunds := write("refunds.json", `{"policy_id":"refunds","name":"Refunds","rules":[`+rule+`],"tests":[{"name":"large","input":{"tool_name":"acme.refund","payload":{"amount":7}},"expect":{"decision":"deny"}}]}`)
	changed := write("changed.json", `{"policy_id":"refunds","name":"Refunds","rules":[`+strings.Replace(rule, "5", "9", 1)+`,{"rule_id":"s","tool":"acme.pay","decision":"deny"}]}`)
	wrong := write("wrong.json", `{"policy_id":"refunds","name":"Refunds","rules":[{"rule_id":"r","tool":"acme.refund","decision":"perhaps"}]}`)
	misspelt := write("misspelt.json", `{"policy_id":"refunds","name":"Refunds","rules":[`+strings.Replace(rule, "payload.amount", "payload.amuont", 1)+`],"tests":[{"name":"large","input":{"tool_name":"acme.refund","payload":{"amount":7}},"expect":{"decision":"deny"}}]}`)
	quorum := write("quorum.json", `{"policy_id":"refunds","name":"Refunds","rules":[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":2}]}]}`)
	nameless := write("nameless.json", `{"name":"Refunds"}`)
	short := write("short.json", `{"name":"Approvals","rules":[{"rule_id":"r","tool":"acme.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}]}]}`)
	found, err := filepath.Glob("../../docs/policies/*.json")
	if err != nil || len(found) < 7 {
		t.Fatalf("samples: got %v, %v", found, err)
	}
	samples := strings.Join(found, " ")
	for _, step := range []struct {
		email string
		args  string
		exit  int
		want  string
	}{
		{"", "policy push " + refunds, 2, "not signed in: run aps login"},
		{"ops@red.example", "login", 0, "signed in; the session is kept in " + kept},
		{"", "policy check " + refunds, 0, "refunds.json: ok, 1 rule, 1 test"},
		{"", "policy check " + refunds + " " + wrong, 1, "wrong.json: rules[0].decision"},
		{"", "policy test " + refunds + " " + misspelt, 1, "refunds.json: 1 of 1 test passes\n" + misspelt + ": 0 of 1 test passes\n    tests[0] \"large\": "},
		{"", "policy check " + misspelt, 1, "1 of 1 test does not pass"},
		{"", "policy check " + quorum, 1, "requires 2 approvals, but the number of members who may vote is 1"},
		{"", "policy diff " + refunds, 1, "refunds  policy  added"},
		{"", "policy push " + refunds, 0, "refunds  version 1  draft"},
		{"", "policy diff " + refunds, 0, ""},
		{"", "policy push --activate " + refunds, 0, "refunds  version 1  active"},
		{"", "policy push --activate " + refunds, 0, "refunds  version 1  active"},
		{"", "policy diff " + changed, 1, "refunds  rule r  changed\nrefunds  rule s  added\nrefunds  tests  changed\n"},
		{"", "policy diff " + wrong, 1, "wrong.json: 422 rules[0].decision"},
		{"", "policy push " + wrong, 1, "wrong.json: 422 rules[0].decision"},
		{"", "policy push " + nameless, 0, "nameless  version 1  draft"}, // its file name is its id
		{"", "policy push " + short, 0, "short  version 1  draft"},
		{"", "policy diff " + short, 0, ""},
		{"", "policy test " + samples, 0, "refund-approvals.json: 6 of 6 tests pass"},
		{"", "policy push " + samples, 0, "two-person-rule  version 1  draft"},
		{"", "policy diff " + samples, 0, ""},
		{"", "policy push " + changed, 0, "refunds  version 2  draft"},
		{"", "policy activate refunds", 0, "refunds  version 2  active"},
		{"", "policy rollback refunds", 0, "refunds  version 1  active"},
		{"", "policy rollback nothing", 1, "404 no such policy"},
		{"", "policy show refunds --version 2", 0, `"state":"archived"`},
		{"", "policy activate short", 0, "refunds is no longer active: one policy at a time decides about all tools\n"},
		{"", "policy push --activate " + refunds, 0, "short is no longer active: one policy at a time decides about all tools\n"},
		{"ops@blue.example", "policy show refunds", 1, "404 no such policy or version"},
		{"", "logout", 0, "signed out"},
		{"", "policy show refunds", 2, "not signed in"},
		{"", "logout", 0, "not signed in"},
	} {
		out, exit := aps(step.email, strings.Fields(step.args)...)
		if exit != step.exit || !strings.Contains(out, step.want) || step.want == "" && out != "" || strings.Contains(out, testPassword) {
			t.Errorf("%s: status %d, want %d: %s", step.args, exit, step.exit, out)
		}
		if found, err := os.Stat(kept); err == nil && found.Mode().Perm() != 0o600 {
			t.Errorf("mode of the stored session: %v", found.Mode())
		}
	}
	// A session is not sent to another service, and a file that other users can read is rejected.
	if out, exit := aps("ops@red.example", "login"); exit != 0 {
		t.Fatal(out)
	}
	other := startProcess(t, t.TempDir())
	out, exit := commandWith(t, []string{"APS_URL=" + other.main, "XDG_CONFIG_HOME=" + home}, "aps", "policy", "show", "refunds")
	if exit != 2 || !strings.Contains(out, "not signed in") {
		t.Errorf("another service: status %d, %s", exit, out)
	}
	if err := os.Chmod(kept, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, exit := aps("", "policy", "show", "refunds"); exit != 2 || !strings.Contains(out, "other users have access") {
		t.Errorf("an open file: status %d, %s", exit, out)
	}
}
