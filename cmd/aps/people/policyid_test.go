package people

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every sample policy is sent with an id: the name of its file.
func TestSamplesHaveIDs(t *testing.T) {
	found, err := filepath.Glob("../../../docs/policies/*.json")
	if err != nil || len(found) < 7 {
		t.Fatalf("got %v, %v", found, err)
	}
	for _, file := range found {
		d, err := readDocument(file)
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		if err != nil || d.policy != id || !strings.Contains(string(d.text), `"policy_id":"`+id+`"`) {
			t.Errorf("%s: got %q, %v", file, d.policy, err)
		}
	}
	own := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(own, []byte(`{"policy_id":"own","name":"n"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := readDocument(own); err != nil || d.policy != "own" {
		t.Errorf("got %q, %v", d.policy, err)
	}
}
