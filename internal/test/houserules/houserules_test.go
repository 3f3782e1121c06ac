package houserules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/houserules"
)

func readTree(t *testing.T) *houserules.Tree {
	t.Helper()
	tree, err := houserules.ReadTree("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestOneMechanism(t *testing.T) {
	tree := readTree(t)
	for _, m := range houserules.Mechanisms() {
		if got := tree.Places(m); !slices.Equal(got, []string{m.Home}) {
			t.Errorf("%s: got %v, want it in %s alone", m.Name, got, m.Home)
		}
	}
}

var namedPath = regexp.MustCompile("`((?:[a-z0-9_]+/)+[A-Za-z0-9_.-]*)`")

// elsewhere lists names in documents that look like paths of the tree.
var elsewhere = []string{"policy/evaluate", "internal/witness", "cmd/litewitness"} // a route; programs of others

// Every file or directory that a document names exists.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	const root = "../../.."
	tree := readTree(t)
	folders, err := tree.TopFolders()
	if err != nil {
		t.Fatal(err)
	}
	documents := []string{root + "/README.md"}
	for _, pattern := range []string{"/docs/*.md", "/docs/*/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedPath.FindAllStringSubmatch(string(text), -1) {
			top, _, _ := strings.Cut(m[1], "/")
			if !slices.Contains(folders, top) || slices.Contains(elsewhere, m[1]) {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", filepath.Base(document), m[1])
			}
		}
	}
}
