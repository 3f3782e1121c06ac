package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const nightlyPolicy = `{"policy_id":"nightly","name":"Nightly","rules":[
	{"rule_id":"customers","tool":"acme.customers.**","decision":"deny","reason":"Customers are for people"}]}`

// nightly runs the example for an organization and returns its output.
func nightly(t *testing.T, p *process, org foundedOrganization) string {
	t.Helper()
	cmd := exec.Command("sh", "../../examples/workflow/nightly.sh", "night-1")
	cmd.Env = append(os.Environ(), "APS_URL="+p.main, "APS_TOKEN="+org.IngestKey.Secret)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("nightly.sh, which needs curl and sed: %v\n%s\n%s", err, out, p.logs)
	}
	return string(out)
}

// The run from plain curl: a night, the same night again after the server was killed, and another organization's night
// of the same name.
func TestNightlyExample(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	person := newRefunder(t, p, red).person
	if err := person.callConsole(t.Context(), "POST", "/policies", rawJSON(nightlyPolicy), nil); err != nil {
		t.Fatal(err)
	}
	if err := person.callConsole(t.Context(), "POST", "/policies/nightly/activate", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	first := nightly(t, p, red)
	for _, line := range []string{
		"report: succeeded", "purge: deny: Customers are for people", "purge: skipped",
		`"status":"succeeded","steps_recorded":4,"steps_planned":4,"gap":0,"events_recorded":5,`,
	} {
		if !strings.Contains(first, line) {
			t.Errorf("%s is missing in\n%s", line, first)
		}
	}
	if strings.Contains(first, "removes customers") {
		t.Errorf("a denied step was done:\n%s", first)
	}
	p.kill()
	p = startProcess(t, dir)
	if again := nightly(t, p, red); again != first {
		t.Errorf("again: got\n%s\nwant\n%s", again, first)
	}
	if other := nightly(t, p, blue); !strings.Contains(other, "purge: succeeded") || strings.SplitN(other, "\n", 2)[0] == strings.SplitN(first, "\n", 2)[0] {
		t.Errorf("the other organization, which has no policy: got\n%s", other)
	}
	p.terminate()
	// red: activation, bridge agent, its key, start, four steps, end. blue: all but the first.
	if out, exit := command(t, "agentledger", "fsck", "--data", dir); exit != 0 || !strings.Contains(out, "2 ledgers, 17 events, 0 faults") {
		t.Errorf("fsck: status %d, %s", exit, out)
	}
}
