package signedvote_test

import (
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/verify/signedvote"
)

// The worked example in docs/spec/signed-votes.md verifies, and its intermediate values are those of this package.
func TestWorkedExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec/signed-votes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(string(page), "## A worked example")
	if !found {
		t.Fatal("no worked example")
	}
	block := func(before string) string {
		t.Helper()
		_, after, found := strings.Cut(example, before)
		_, after, fenced := strings.Cut(after, "```json\n")
		text, _, closed := strings.Cut(after, "\n```")
		if !found || !fenced || !closed {
			t.Fatalf("no block after %q", before)
		}
		return text
	}
	a, err := signedvote.ParseAssertion([]byte(block("The assertion in the event")))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signedvote.ParseKey([]byte(block("It verifies under")))
	if err != nil {
		t.Fatal(err)
	}
	v := vote()
	v.Reason = "invoice seen"
	v.ActionDigest = signedvote.Challenge([]byte("x"))
	signed := text(t, v, bucket)
	challenge := signedvote.Challenge(signed)
	indented := "    " + strings.ReplaceAll(strings.TrimSuffix(string(signed), "\n"), "\n", "\n    ")
	for _, want := range []string{indented, "`" + signedvote.Bytes(challenge[:]).String() + "`", "`" + key.Thumbprint() + "`",
		"\n    " + string(a.ClientDataJSON) + "\n"} {
		if !strings.Contains(example, want) {
			t.Errorf("the example does not have\n%s", want)
		}
	}
	c := signedvote.Credential{ID: a.CredentialID, Key: key, RPID: "log.example", WebOrigin: "https://log.example"}
	if err := c.Check(signed, &a, at); err != nil {
		t.Error(err)
	}
}
