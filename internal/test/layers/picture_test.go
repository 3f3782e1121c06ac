package layers

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the picture of docs/architecture.md anew")

// floors are the titles of the picture, from the top. A floor holds the layers [begin, end).
var floors = []struct {
	begin, end int
	title      string
}{
	{50, 60, "programs"},
	{45, 50, "settings"},
	{41, 45, "HTTP surfaces and clients"},
	{40, 41, "shared by the surfaces"},
	{30, 40, "over time, and on all organizations"},
	{22, 30, "what organizations have"},
	{21, 22, "written in the append of their cause"},
	{19, 21, "the ledgers"},
	{9, 19, "pure public library"},
	{0, 9, "contract and small parts"},
	{60, 61, "engines and fixtures, reached by programs and tests alone"},
}

const (
	document = "../../../docs/architecture.md"
	begin    = "<!-- the layers of internal/test/layers -->\n```\n"
	end      = "```\n<!-- end of the layers -->"
	columns  = 110
)

// picture draws the table of layers, the highest first.
func picture() string {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(layer))
	for _, f := range floors {
		fmt.Fprintf(&b, "%s\n", f.title)
		line := "   "
		for _, name := range names {
			if layer[name] < f.begin || layer[name] >= f.end {
				continue
			}
			if len(line)+len(name)+2 > columns {
				b.WriteString(line + "\n")
				line = "   "
			}
			line += "  " + name
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// The picture in the documents is the table that the tests hold.
func TestPicture(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	drawn, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no picture of the layers", document)
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+picture()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if drawn != picture() {
		t.Errorf("%s shows other layers: run go test ./internal/test/layers -update", document)
	}
}
