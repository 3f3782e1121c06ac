package pgstore

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// A table that is added later must not be forgotten when an organization is dropped. The rows of barriers, nodes,
// leases and writers belong to no organization.
func TestDropKnowsEveryTable(t *testing.T) {
	files, err := filepath.Glob("schema/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	want := []string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, made := range regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllSubmatch(text, -1) {
			if name := string(made[1]); !slices.Contains([]string{"barrier", "lease", "lease_epoch", "node", "writer"}, name) {
				want = append(want, "DELETE FROM "+name+" WHERE org = $1")
			}
		}
	}
	got := slices.Sorted(slices.Values(dropSQL[:]))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
