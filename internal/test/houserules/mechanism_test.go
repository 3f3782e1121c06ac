package houserules_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/test/houserules"
)

// The tree of this test reveals a mechanism outside its home, which TestOneMechanism would report.
func TestFindsASecondMechanism(t *testing.T) {
	root := t.TempDir()
	body := "package a\n\nimport \"os\"\n\nfunc replace() { os.Rename(\"x\", \"y\") }\n"
	if err := os.Mkdir(filepath.Join(root, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "a.go"), []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := houserules.ReadTree(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tree.Places(houserules.Mechanisms()[1]), []string{"a"}; !slices.Equal(got, want) {
		t.Errorf("places of a durable file: got %v, want %v", got, want)
	}
}
