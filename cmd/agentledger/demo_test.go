package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The demo passes in a few seconds, and the transcript in the README is what it
// prints but for ids, keys and hashes.
func TestDemo(t *testing.T) {
	began := time.Now()
	out, exit := command(t, "agentledger", "demo", "--once")
	if took := time.Since(began); exit != 0 || took > 10*time.Second {
		t.Fatalf("exit %d after %v\n%s", exit, took, out)
	}
	if strings.Contains(out, "FAIL") || !strings.Contains(out, "\n   ok   ") {
		t.Errorf("not all is ok:\n%s", out)
	}
	got, want := strings.Split(masked(out), "\n"), strings.Split(masked(transcript(t)), "\n")
	for i := range max(len(got), len(want)) {
		if lineAt(got, i) != lineAt(want, i) {
			t.Errorf("line %d of the transcript:\ngot  %q\nwant %q", i+1, lineAt(got, i), lineAt(want, i))
		}
	}
}

// transcript returns what the README shows below the command.
func transcript(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(readme), "\n```\n$ go run ./cmd/agentledger demo --once\n")
	block, _, closed := strings.Cut(after, "\n```\n")
	if !found || !closed {
		t.Fatal("README.md has no block that begins with: $ go run ./cmd/agentledger demo --once")
	}
	return block + "\n"
}

// drawn is what differs from one run to the next: verifier keys, organization
// ids, agents, DIDs and the beginning of a root, in this order.
var drawn = regexp.MustCompile(`\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{44}` +
	`|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`|agt_[a-z2-7]{26}` +
	`|did:key:z6Mk[1-9A-HJ-NP-Za-km-z]+` +
	`|root [0-9a-f]{16}`)

func masked(s string) string { return drawn.ReplaceAllString(s, "…") }

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}
