package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
)

// The guard in shell: an act that is permitted, one that is denied, and one without a decision, in two organizations.
func TestGuardExample(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	p.denyTool(t.Context(), red, "acme.refund")
	for _, c := range []struct {
		org    foundedOrganization
		tool   string
		secret string // "" is the organization's
		code   int
		output string
	}{
		{red, "acme.read", "", 0, "done\n"},
		{red, "acme.refund", "", 3, `denied: {"decision":false,"context":{"reason":"for the test","evaluation":{"decision":"deny",`},
		{blue, "acme.refund", "", 0, "done\n"},
		{red, "acme.read", "apl_live_x", 4, `no decision: {"error":"Invalid ingest API key"}`},
		{red, "not a tool", "", 4, `no decision: {"error":"action.name must be segments of`},
	} {
		secret := c.secret
		if secret == "" {
			secret = c.org.IngestKey.Secret
		}
		cmd := exec.Command("sh", "../../examples/authzen/guard.sh", c.tool, `{"amount_usd":5}`, "order", "4711", "echo", "done")
		cmd.Env = append(os.Environ(), "APS_URL="+p.main, "APS_TOKEN="+secret, "APS_AGENT="+string(c.org.Agent.AgentID))
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.output) {
			t.Errorf("%s: got status %d, %s, want %d, %s", c.tool, cmd.ProcessState.ExitCode(), out, c.code, c.output)
		}
	}
}

// The guard in shell that asks people, in two organizations: they approve, and the command runs once; they deny, and it
// does not run. What the policy denies is not requested. With the key of another agent the approval is not used.
func TestRequestExample(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := newRefunder(t, p, p.found(t.Context(), "red", nil)), newRefunder(t, p, p.found(t.Context(), "blue", nil))
	for _, r := range []*refunder{red, blue} {
		r.requireApproval(t)
	}
	for i, c := range []struct {
		r      *refunder
		tool   string
		vote   string // "" if nobody is asked
		key    *refunder
		code   int
		output string
	}{
		{red, "acme.refund", "approve", red, 0, "done\n"},
		{red, "acme.refund", "deny", red, 3, `denied: {"task":{"id":"apr_`},
		{blue, "acme.refund", "approve", blue, 0, "done\n"},
		{blue, "acme.refund", "approve", red, 3, `denied: {"decision":false,"context":{"reason":"approval_unverifiable","next_action":"none",`},
		{blue, "acme.read", "", blue, 0, "done\n"},
	} {
		key := filepath.Join(t.TempDir(), "agent.key")
		if err := os.WriteFile(key, []byte(c.key.org.Agent.PrivateB64+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "../../examples/authzen/request.sh", c.tool, `{"amount":5}`, "order", strconv.Itoa(i), "echo", "done")
		cmd.Env = append(os.Environ(), "APS_URL="+p.main, "APS_TOKEN="+c.r.org.IngestKey.Secret, "APS_AGENT="+string(c.r.org.Agent.AgentID), "APS_KEY_FILE="+key)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if c.vote != "" {
			if err := c.r.vote(t, c.r.awaitQuestion(t), c.vote); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		if cmd.ProcessState.ExitCode() != c.code || !strings.HasPrefix(out.String(), c.output) {
			t.Errorf("%d: got status %d, %s, want %d, %s", i, cmd.ProcessState.ExitCode(), &out, c.code, c.output)
		}
	}
}

// awaitQuestion returns the organization's pending approval.
func (r *refunder) awaitQuestion(t *testing.T) client.Approval {
	t.Helper()
	for t.Context().Err() == nil {
		var pending struct {
			Approvals []client.Approval `json:"approvals"`
		}
		if err := r.person.callConsole(t.Context(), "GET", "/approvals?status=pending", nil, &pending); err != nil {
			t.Fatal(err)
		}
		if len(pending.Approvals) == 1 {
			return pending.Approvals[0]
		}
	}
	return client.Approval{}
}
