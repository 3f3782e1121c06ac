package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example: a call in two organizations under one span, which each finds by its trace, and one without a span.
func TestTracingExample(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	p := startProcess(t, t.TempDir())
	red, blue := newRefunder(t, p, p.found(t.Context(), "red", nil)), newRefunder(t, p, p.found(t.Context(), "blue", nil))
	for _, r := range []*refunder{red, blue} {
		key := filepath.Join(t.TempDir(), "agent.key")
		if err := os.WriteFile(key, []byte(r.org.Agent.PrivateB64+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, parent := range []string{"00-" + trace + "-00f067aa0ba902b7-01", ""} {
			cmd := exec.Command("sh", "../../examples/tracing/record.sh", "acme.read", `{"order":"A-1"}`)
			cmd.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), "TRACEPARENT="+parent, "APS_URL="+p.main,
				"APS_TOKEN="+r.org.IngestKey.Secret, "APS_ORG="+r.org.OrganizationID.String(), "APS_AGENT="+string(r.org.Agent.AgentID),
				"APS_KEY_ID="+string(r.org.Agent.KeyID), "APS_KEY_FILE="+key)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("record.sh: %v\n%s", err, out)
			}
		}
	}
	for _, r := range []*refunder{red, blue} {
		var all, found struct {
			Acts []struct {
				Trace string `json:"trace_id"`
				Agent string `json:"agent_id"`
			} `json:"acts"`
		}
		if err := r.person.callConsole(t.Context(), "GET", "/acts", nil, &all); err != nil {
			t.Fatal(err)
		}
		if err := r.person.callConsole(t.Context(), "GET", "/acts?trace_id="+trace, nil, &found); err != nil {
			t.Fatal(err)
		}
		if len(all.Acts) != 2 || !strings.HasPrefix(all.Acts[0].Trace, "trc_") || len(found.Acts) != 1 || found.Acts[0].Trace != trace ||
			found.Acts[0].Agent != string(r.org.Agent.AgentID) {
			t.Errorf("got %+v, of the trace %+v", all.Acts, found.Acts)
		}
	}
}
