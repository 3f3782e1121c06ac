package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The demo passes, and prints the transcript in docs/demo.md except for ids, keys and hashes.
func TestDemo(t *testing.T) {
	out, exit := command(t, "agentledger", "demo", "--once")
	if exit != 0 {
		t.Fatalf("exit %d\n%s", exit, out)
	}
	if strings.Contains(out, "FAIL") || !strings.Contains(out, "\n   ok   ") {
		t.Errorf("not all checks passed:\n%s", out)
	}
	got, want := strings.Split(masked(out), "\n"), strings.Split(masked(transcript(t)), "\n")
	for i := range max(len(got), len(want)) {
		if lineAt(got, i) != lineAt(want, i) {
			t.Errorf("line %d of the transcript:\ngot  %q\nwant %q", i+1, lineAt(got, i), lineAt(want, i))
		}
	}
}

// While the demo serves, the agent continues: its log grows, and an approver's vote releases a refund. Interrupted, the demo
// ends without an error.
func TestDemoKeepsWorking(t *testing.T) {
	cmd := exec.Command(filepath.Join(programs, "agentledger"), "demo")
	printed, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(printed)
	readUntil := func(text string) string {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return strings.TrimSpace(lines.Text())
			}
		}
		t.Fatalf("the demo did not print %q", text)
		return ""
	}
	page, _, _ := strings.Cut(readUntil("/log/acme"), " ")
	main := strings.TrimSuffix(page, "/log/acme")
	readUntil("Stop with Ctrl-C.")
	approver, err := newOperator(main, main)
	if err != nil {
		t.Fatal(err)
	}
	size := func() (head struct {
		Size int `json:"tree_size"`
	}) {
		if err := approver.callJSON(t.Context(), "GET", main+"/v1/public/orgs/acme/transparency/head", nil, nil, &head); err != nil {
			t.Fatal(err)
		}
		return head
	}
	before := size()
	if err := approver.signIn(t.Context(), "ops@acme.example", "correct horse battery staple"); err != nil {
		t.Fatal(err)
	}
	var pending struct {
		Approvals []struct {
			ID           string `json:"approval_id"`
			ActionDigest string `json:"action_digest"`
		} `json:"approvals"`
	}
	eventually(t, "a refund is pending", func() bool {
		err := approver.callConsole(t.Context(), "GET", "/approvals?status=pending", nil, &pending)
		return err == nil && len(pending.Approvals) == 1
	})
	refund := pending.Approvals[0]
	if err := approver.callConsole(t.Context(), "POST", "/approvals/"+refund.ID+"/votes",
		map[string]any{"vote": "approve", "action_digest": refund.ActionDigest}, nil); err != nil {
		t.Fatal(err)
	}
	readUntil("approved: the agent refunded order A-1010")
	if after := size(); after.Size < before.Size+3 { // vote, use and refund
		t.Errorf("the log had %d events and has %d", before.Size, after.Size)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	readUntil("checks passed")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the demo ended with %v", err)
	}
}

// transcript returns what docs/demo.md shows below the command.
func transcript(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../docs/demo.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(readme), "\n```\n$ go run ./cmd/agentledger demo --once\n")
	block, _, closed := strings.Cut(after, "\n```\n")
	if !found || !closed {
		t.Fatal("docs/demo.md has no block that begins with: $ go run ./cmd/agentledger demo --once")
	}
	return block + "\n"
}

// variable matches what differs between runs: ports, verifier keys, organization ids, agents, DIDs and the beginning of a
// root, in this order.
var variable = regexp.MustCompile(`localhost:[0-9]+/|\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{44}` +
	`|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`|agt_[a-z2-7]{26}` +
	`|did:key:z6Mk[1-9A-HJ-NP-Za-km-z]+` +
	`|root [0-9a-f]{16}`)

func masked(s string) string { return variable.ReplaceAllString(s, "…") }

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}
