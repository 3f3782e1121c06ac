package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example of coverage finds the calls that went around the policy, from the acts of its own organization alone.
func TestCoverageInATerminal(t *testing.T) {
	s := newShop(t)
	blue := s.found(t.Context(), "blue", nil)
	example := filepath.Join("..", "..", "examples", "coverage")
	out, exit := commandWith(t, []string{"APS_URL=" + s.main, "APS_TOKEN=" + s.org.IngestKey.Secret, "APS_ORG=" + s.org.OrganizationID.String(),
		"APS_AGENT=" + string(s.org.Agent.AgentID), "APS_KEY_ID=" + string(s.org.Agent.KeyID), "APS_KEY_FILE=" + filepath.Join(s.dir, "agent.key")},
		"aps", "send", filepath.Join(example, "events.ndjson"))
	if exit != 0 {
		t.Fatalf("send: status %d, %s", exit, out)
	}
	for _, tt := range []struct {
		slug string
		want []string
	}{
		{"red", []string{"5 calls, 1 line or span is no call", "matched      2 of 5", "by call_id       2", "not made     0",
			"missing           4  -  acme.mail.send", "repeated", "missing           5  -  acme.mail.send  -  -  no_act",
			"unpermitted       7  -  acme.customers.delete", "call_id  denied"}},
		{string(blue.Slug), []string{"matched      0 of 5", "missing      5", "extra        0"}},
	} {
		cmd := exec.Command("sh", filepath.Join(example, "compare.sh"))
		person := []string{"APS_URL=" + s.main, "APS_ID_URL=" + s.identity, "APS_EMAIL=ops@" + tt.slug + ".example", "APS_PASSWORD=" + testPassword}
		cmd.Env = append(os.Environ(), append(person, "PATH="+programs+":"+os.Getenv("PATH"))...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Fatalf("%s: %v: %s", tt.slug, err, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: no %q in:\n%s", tt.slug, want, out)
			}
		}
		stated, exit := commandWith(t, person, "aps", "coverage", "--state", "--calls", filepath.Join(example, "calls.csv"), "--field", "call_id=request",
			"--skip-status", "401", "--from", "2026-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z")
		if exit != 1 || !strings.Contains(stated, "stated       in the log, at index ") || !strings.Contains(stated, tt.want[len(tt.want)-1]) {
			t.Errorf("%s: --state: status %d, %s", tt.slug, exit, stated)
		}
	}
}
