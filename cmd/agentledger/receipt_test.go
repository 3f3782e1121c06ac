package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
)

// The example verifies a receipt without code of this project, in two organizations, and not under another key.
func TestReceiptExample(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	send := func(org foundedOrganization) string {
		t.Helper()
		w, err := newWorker(p.main, org, client.Retry{Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		sendOne(t, w)
		return string(sendOne(t, w))
	}
	reds, blues := send(red), send(blue)
	for _, c := range []struct {
		slug, event, key string
		code             int
		output           string
	}{
		{"red", reds, red.LogKey, 0, "proved: entry "},
		{"blue", blues, blue.LogKey, 0, "proved: entry "},
		{"red", reds, blue.LogKey, 1, "signed by another key: "},
		{"red", blues + "-none", red.LogKey, 1, "404"},
	} {
		out, err := exec.Command("python3", "../../examples/receipt/verify.py", p.main, c.slug, c.event, c.key).CombinedOutput()
		code := 0
		if exit, ok := err.(*exec.ExitError); ok {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.code || !strings.Contains(string(out), c.output) {
			t.Errorf("%s %s: got %s", c.slug, c.event, fmt.Sprint(code, string(out)))
		}
	}
}
