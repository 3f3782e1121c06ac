package vectors

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// worked returns the bundle of the page's example, its text, and the key that is pinned there.
func worked(t *testing.T) (b *verify.Bundle, text string, key tlog.VerifierKey) {
	t.Helper()
	text = block(t, page(t), "```json\n")
	b, err := verify.ParseBundle([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`\n    (log\.example/o/\S+)\n`).FindStringSubmatch(page(t))
	if pinned == nil {
		t.Fatal("no pinned key")
	}
	if key, err = tlog.ParseVerifierKey(pinned[1]); err != nil {
		t.Fatal(err)
	}
	return b, text, key
}

// block returns the page's first block of code that begins with a text, without its fences.
func block(t *testing.T, page, begin string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, begin)
	text, _, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed {
		t.Fatalf("no block that begins with %q", begin)
	}
	return text + "\n"
}

// The page's example is valid under the key that the page pins.
func TestWorkedExample(t *testing.T) {
	b, _, key := worked(t)
	r := verify.Check(b, verify.Options{Key: &key})
	for name, ok := range map[string]*bool{"record": r.RecordOK, "signature": r.SignatureOK, "envelope": r.EnvelopeOK} {
		if ok == nil || !*ok {
			t.Errorf("%s is not true: %v", name, r.Errors)
		}
	}
	if !r.OK || r.LogKeySource != verify.KeyFromArgument {
		t.Errorf("got %v by %s", r.Errors, r.LogKeySource)
	}
}

// Each value that the page works through is the result of its formula.
func TestWorkedValues(t *testing.T) {
	b, _, _ := worked(t)
	sum := func(parts ...string) string {
		h := sha256.Sum256([]byte(strings.Join(parts, "")))
		return string(h[:])
	}
	leaf1, leaf2 := sum("\x00", *b.PreviousEntry), sum("\x00", b.Entry)
	leaf0 := string(b.PreviousInclusion.Hashes[0][:])
	node := sum("\x01", leaf0, leaf1)
	root := sum("\x01", node, leaf2)
	signed := regexp.MustCompile(`,"sig_alg":"ed25519","sig_value_b64":"[^"]*"`).ReplaceAllString(*b.Envelope, "")
	vkey := strings.SplitN(b.LogKey, "+", 3)
	typed, err := base64.StdEncoding.DecodeString(vkey[2])
	if err != nil {
		t.Fatal(err)
	}
	keyID := member(t, *b.Envelope, "key_id")
	want := map[string]string{
		"key id": sum(vkey[0], "\n", string(typed))[:4], "record hash": sum(*b.Record), "leaf 2": leaf2, "leaf 1": leaf1, "leaf 0": leaf0, "node 0-1": node, "root": root,
		"event_digest": sum("APS1\n", keyID, "\n", signed),
	}
	got := workedRows(t)
	for what, bytes := range want {
		if got[what] != fmt.Sprintf("%x", bytes) {
			t.Errorf("%s: the page has %s, want %x", what, got[what], bytes)
		}
	}
	if len(got) != len(want)+1 || got["signed content"] != fmt.Sprint(len(signed)) {
		t.Errorf("the page has %d rows and %s bytes, want %d and %d", len(got), got["signed content"], len(want)+1, len(signed))
	}
	inBundle := []id.Hash{b.EventHash, b.Inclusion.Hashes[0], b.Inclusion.RootHash, b.PreviousInclusion.RootHash}
	if !slices.Equal(inBundle, []id.Hash{id.Hash([]byte(leaf2)), id.Hash([]byte(node)), id.Hash([]byte(root)), id.Hash([]byte(root))}) {
		t.Errorf("the bundle has %v", inBundle)
	}
}

// workedRows are the results in the page's table, by what they are of.
func workedRows(t *testing.T) map[string]string {
	rows := map[string]string{}
	_, rest, _ := strings.Cut(page(t), "| What | Computed | Result |\n")
	for _, line := range strings.Split(rest, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) < 3 && !strings.HasPrefix(line, "|---") {
			return rows
		}
		if len(cells) == 3 {
			rows[cells[0]] = strings.Trim(cells[2], "`")
		}
	}
	return rows
}

func member(t *testing.T, object, name string) string {
	t.Helper()
	s, ok := objectOf(t, object)[name].(string)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return s
}

// The short program on the page prints for the page's bundle what the page says.
func TestWorkedProgram(t *testing.T) {
	_, bundle, key := worked(t)
	dir, text := t.TempDir(), page(t)
	file, program := filepath.Join(dir, "bundle.json"), filepath.Join(dir, "check_bundle.py")
	for name, content := range map[string]string{file: bundle, program: block(t, text, "```python\n")} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("python3", "-B", program, file, key.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v (it needs python3 with the package cryptography: scripts/python)\n%s", err, out)
	}
	_, want, _ := strings.Cut(block(t, text, "```\n$ python3 check_bundle.py"), "\n")
	if string(out) != want {
		t.Errorf("got %s, want %s", out, want)
	}
}

// The page's shell commands give the values of the bundle.
func TestWorkedShell(t *testing.T) {
	b, _, _ := worked(t)
	text := block(t, page(t), "```\n$ curl")
	for _, sum := range [][32]byte{sha256.Sum256([]byte("\x00" + b.Entry)), sha256.Sum256([]byte(*b.Record)), sha256.Sum256([]byte("agentledger/genesis/v1\n" + string(b.Origin) + "\n"))} {
		if !strings.Contains(text, fmt.Sprintf("\n%x  -\n", sum)) {
			t.Errorf("no %x in %s", sum, text)
		}
	}
}
