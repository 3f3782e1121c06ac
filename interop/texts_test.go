package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os/exec"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/jcs"
)

var count = flag.Int("texts", 20_000, "number of texts that are compared; 1,000,000 take about a minute")

// Every text has the same canonical form in three languages, or is rejected by all of them.
func TestLanguagesAgree(t *testing.T) {
	texts, want, refused := make([]string, *count), make([]string, *count), 0
	g := NewGenerator(1)
	for i := range texts {
		texts[i] = g.Text()
		want[i] = digest(texts[i])
		if want[i] == "error" {
			refused++
		}
	}
	if refused < *count/10 || refused > *count*2/3 {
		t.Fatalf("got %d of %d texts refused, want between a tenth and two thirds", refused, *count)
	}
	for name, program := range map[string][]string{
		"typescript": {"node", "../clients/typescript/test/canon_lines.js"},
		"python":     {"../clients/python/interpreter", "../clients/python/tests/canon_lines.py"},
	} {
		got := runCanonical(t, program, texts)
		if len(got) != len(want) {
			t.Fatalf("%s: got %d lines, want %d", name, len(got), len(want))
		}
		differences := 0
		for i := range want {
			if got[i] != want[i] {
				if differences++; differences <= 10 {
					t.Errorf("%s: text %d, %q: got %s, want %s", name, i, texts[i], got[i], want[i])
				}
			}
		}
		t.Logf("%s: %d texts, %d refused, %d differences", name, len(want), refused, differences)
	}
}

func digest(text string) string {
	canonical, err := jcs.Canonicalize([]byte(text), jcs.MaxDepth)
	if err != nil {
		return "error"
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

func runCanonical(t *testing.T, program, texts []string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program[0], program[1:]...)
	command.Stdin = strings.NewReader(strings.Join(texts, "\n") + "\n")
	var wrong bytes.Buffer
	command.Stderr = &wrong
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", program[0], err, wrong.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
