package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/jcs"
)

var count = flag.Int("texts", 20_000, "number of texts that are compared; 1,000,000 take about a minute")

// Every text has the same canonical form in three languages, or is rejected by all of them. The same holds for the forms
// of the text as the arguments of a tool.
func TestLanguagesAgree(t *testing.T) {
	g := NewGenerator(1)
	texts, calls := make([]string, *count), make([]string, *count)
	for i := range texts {
		texts[i] = g.Text()
		calls[i] = `{"a":` + texts[i] + `}`
		if i%2 == 0 {
			calls[i] = texts[i]
		}
	}
	compareLanguages(t, texts, digest)
	compareLanguages(t, calls, digestArguments, "arguments")
}

// compareLanguages compares what the programs of the other languages, with more arguments, print for texts.
func compareLanguages(t *testing.T, texts []string, digest func(string) string, more ...string) {
	t.Helper()
	want, refused := make([]string, len(texts)), 0
	for i := range texts {
		if want[i] = digest(texts[i]); want[i] == "error" {
			refused++
		}
	}
	if refused < len(texts)/10 || refused > len(texts)*4/5 {
		t.Fatalf("got %d of %d texts refused, want between a tenth and four fifths", refused, len(texts))
	}
	for name, program := range map[string][]string{
		"typescript": {"node", "../clients/typescript/test/canon_lines.js"},
		"python":     {"../clients/python/interpreter", "../clients/python/tests/canon_lines.py"},
	} {
		got := runCanonical(t, slices.Concat(program, more), texts)
		if len(got) != len(want) {
			t.Fatalf("%s: got %d lines, want %d", name, len(got), len(want))
		}
		differences := 0
		for i := range want {
			if got[i] != want[i] {
				if differences++; differences <= 10 {
					t.Errorf("%s %v: text %d, %q: got %s, want %s", name, more, i, texts[i], got[i], want[i])
				}
			}
		}
		t.Logf("%s %v: %d texts, %d refused, %d differences", name, more, len(want), refused, differences)
	}
}

func digest(text string) string {
	canonical, err := jcs.Canonicalize([]byte(text), jcs.MaxDepth)
	if err != nil {
		return "error"
	}
	return hexDigest(canonical)
}

func hexDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// digestArguments returns the digest of the exact form of arguments, LF and the payload that records them.
func digestArguments(text string) string {
	exact, err := jcs.Exact([]byte(text), jcs.MaxDepth)
	if err != nil || exact[0] != '{' {
		return "error"
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(exact, &members); err != nil || members[jcs.TaggedMember] != nil {
		return "error"
	}
	jcs.TagMembers(members)
	recorded, err := json.Marshal(members)
	if err != nil {
		return "error"
	}
	payload, err := jcs.Canonicalize(recorded, jcs.MaxDepth-1)
	if err != nil {
		return "error"
	}
	return hexDigest(slices.Concat(exact, []byte("\n"), payload))
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
