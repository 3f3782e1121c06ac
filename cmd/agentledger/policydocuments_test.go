package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A document without policy_id gets the name of its file as its id, as in aps policy.
func TestPolicyIDOfFile(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const document = `{"name":"n","rules":[]}`
	for name, want := range map[string]string{"refunds.json": "refunds", "refunds": "refunds"} {
		p, wrong, err := readPolicy(write(name, document))
		if err != nil || wrong != "" || p.ID != want {
			t.Errorf("%s: got %q, %q, %v", name, p.ID, wrong, err)
		}
	}
	if p, _, _ := readPolicy(write("x.json", `{"policy_id":"own","name":"n","rules":[]}`)); p.ID != "own" {
		t.Errorf("got %q", p.ID)
	}
	var out bytes.Buffer
	if err := (checkCommand{files{[]string{write("not an id.json", document)}}}).Run(&out); err != errPolicyFound || !strings.Contains(out.String(), "policy_id") {
		t.Errorf("got %v, %s", err, &out)
	}
}
