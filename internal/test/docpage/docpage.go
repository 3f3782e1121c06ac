// Package docpage keeps generated pages of docs/reference as tests render them.
package docpage

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated pages of docs/reference")

// Check reports an error if the page docs/reference/NAME.md differs from want. With -update it writes the page. root is the
// path of the repository, relative to the package that is tested.
func Check(t *testing.T, root, name, want string) {
	t.Helper()
	path := filepath.Join(root, "docs", "reference", name+".md")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	line := 0
	for line < min(len(gotLines), len(wantLines))-1 && gotLines[line] == wantLines[line] {
		line++
	}
	t.Errorf("%s:%d: got %q, want %q: run the test with -update", path, line+1, gotLines[line], wantLines[line])
}

// Cell returns a text that stays within a cell of a table.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// Code returns a text as code in a cell of a table, or "" for "".
func Code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + Cell(text) + "`"
}
