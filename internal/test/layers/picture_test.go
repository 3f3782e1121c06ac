package layers

import (
	"flag"
	"fmt"
	"go/doc"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "write the picture and the table of folders in docs/internals/architecture.md anew")

// maxBoxes is the number of boxes that a reader can take in at a glance.
const maxBoxes = 30

// A floor of the picture contains boxes. A box contains the directories that it names, with everything below them. A
// directory named by two boxes belongs to the one with the longer name. Boxes import their own floor and those below.
type floor struct {
	title string
	boxes []string
}

func floors() []floor {
	return []floor{
		{"programs", []string{"cmd/agentledger, internal/config", "cmd/aps"}},
		{"HTTP surfaces", []string{"ingest", "publicapi", "console", "identity", "web"}},
		{"clients", []string{"client", "monitor", "internal/mcp, internal/releasefiles, internal/commandline"}},
		{"what organizations have and do", []string{"internal/tenant", "internal/flow", "internal/read", "internal/operate",
			"internal/deliver", "internal/sysevent"}},
		{"shared by the surfaces", []string{"internal/http, internal/cluster/forward, internal/wire"}},
		{"the ledgers", []string{"log"}},
		{"on the store", []string{"internal/records, internal/seal, internal/oidc, internal/cluster"}},
		{"pure public library", []string{"verify, internal/packacts", "policy", "event, did, internal/keytable", "tlog", "trust, grant"}},
		{"contract and small parts", []string{"storage", "id, fault, edkey, decimal", "internal"}},
		{"engines, chosen by the program", []string{"storage/pebblestore", "storage/pgstore", "storage/archive"}},
	}
}

// outside lists what the picture omits: fixtures, helpers of make, and starting points for others.
func outside(name string) bool {
	for _, prefix := range []string{"internal/test/", "examples/", "scripts/", "tools/", "deploy/", "clients", "docs", "bench", "interop"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "test") // storage/storagetest, internal/clock/clocktest
}

// boxOf returns the box of a package and its floor, counted from the top.
func boxOf(name string) (box string, at int) {
	longest := ""
	for i, f := range floors() {
		for _, b := range f.boxes {
			for folder := range strings.SplitSeq(b, ", ") {
				if (name == folder || strings.HasPrefix(name, folder+"/")) && len(folder) > len(longest) {
					longest, box, at = folder, b, i
				}
			}
		}
	}
	return box, at
}

// The picture has a box for each package, and its boxes import only downwards. The engines are at the bottom because
// only the program knows them; they themselves use what is above.
func TestBoxes(t *testing.T) {
	boxes, filled := 0, make(map[string]bool)
	for _, f := range floors() {
		boxes += len(f.boxes)
	}
	if boxes > maxBoxes {
		t.Errorf("got %d boxes, want at most %d", boxes, maxBoxes)
	}
	engines := len(floors()) - 1
	for name, p := range list(t) {
		if outside(name) {
			continue
		}
		box, at := boxOf(name)
		if box == "" {
			t.Errorf("%s is in no box", name)
		}
		filled[box] = true
		for _, imported := range p.Imports {
			below, ours := strings.CutPrefix(imported, module)
			if to, floor := boxOf(below); ours && to != "" && at < engines && to != box && (floor < at || floor == engines && at > 0) {
				t.Errorf("%s (%s) imports %s (%s)", name, box, below, to)
			}
		}
	}
	if len(filled) != boxes {
		t.Errorf("got %d boxes with packages, want %d", len(filled), boxes)
	}
}

// picture draws the floors, the highest first.
func picture(t *testing.T) string {
	t.Helper()
	const column = 34
	var b strings.Builder
	b.WriteString("```\n")
	for _, f := range floors() {
		line := f.title + strings.Repeat(" ", column-len(f.title))
		for _, box := range f.boxes {
			next := "[" + box + "]  "
			if len(line)+len(next) > 120 {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", column)
			}
			line += next
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}

// group describes what the packages in a directory have in common if the directory itself is not a package.
func group() map[string]string {
	return map[string]string{
		"bench":            "A separate module: benchmarks against peers.",
		"clients":          "The clients for Python, TypeScript and n8n, each with its own tests, and the packages that a service has of the first two.",
		"cmd":              "The programs: `agentledger` (the service and its operator's commands) and `aps` (agents, auditors, monitors).",
		"deploy":           "Units, images, charts, alerts and dashboards for operators.",
		"docs":             "The documents; [docs/README.md](../README.md) lists them.",
		"examples":         "Agents to start from.",
		"internal":         "Mechanisms that exist once:",
		"internal/deliver": "Messages that are sent later, because they wait for a receiver:",
		"internal/flow":    "Processes that span several requests:",
		"internal/http":    "What the HTTP surfaces share:",
		"internal/mcp":     "The gateway for the Model Context Protocol:",
		"internal/operate": "Operations on whole organizations and logs:",
		"internal/read":    "Queries of stored events:",
		"internal/tenant":  "The records of an organization:",
		"internal/test":    "Fixtures, and the tests of the tree itself:",
		"interop":          "A separate module: third-party programs on a served log.",
		"scripts":          "Helpers of `make`.",
		"testdata":         "The corpus for verifiers (`testdata/vectors`, `testdata/packs`).",
		"tools":            "Pinned tools, and the programs that build and check a release.",
	}
}

// folders makes the table of directories from the package comments: a row for each top-level directory and each group
// of internal. Below the sentence of a directory are the names of its packages.
func folders(t *testing.T) string {
	t.Helper()
	comments, below := make(map[string]string), make(map[string][]string)
	rows := make(map[string]bool)
	for name := range group() {
		rows[name] = true
	}
	for name, p := range list(t) {
		comments[name] = p.Doc
		row := rowOf(name)
		rows[row] = true
		if name != row && !strings.Contains(strings.TrimPrefix(name, row), "/internal/") && (row == "internal/test" || !outside(name)) {
			below[row] = append(below[row], strings.TrimPrefix(name, row+"/"))
		}
	}
	var b strings.Builder
	b.WriteString("| Folder | Contents |\n|---|---|\n")
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		text, isGroup := group()[row]
		if !isGroup {
			text = synopsis(comments[row])
		}
		if names := below[row]; len(names) > 0 && (!isGroup || strings.HasSuffix(text, ":")) {
			slices.Sort(names)
			if !isGroup {
				text += " With"
			}
			text += " `" + strings.Join(names, "`, `") + "`."
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", row, text)
	}
	return b.String()
}

// rowOf returns the directory whose row contains a package: its top-level directory, its group of internal, or
// internal.
func rowOf(name string) string {
	parts := strings.Split(name, "/")
	if parts[0] != "internal" {
		return parts[0]
	}
	if two := strings.Join(parts[:2], "/"); group()[two] != "" {
		return two
	}
	return "internal"
}

// synopsis returns the first sentence of a package comment without "Package name".
func synopsis(comment string) string {
	text := new(doc.Package).Synopsis(comment)
	words := strings.SplitN(text, " ", 3)
	if len(words) == 3 && words[0] == "Package" {
		text = words[2]
	}
	for _, verb := range []string{"is ", "has ", "holds "} {
		text = strings.TrimPrefix(text, verb)
	}
	first := []rune(text)
	if len(first) == 0 {
		return ""
	}
	first[0] = unicode.ToUpper(first[0])
	return strings.ReplaceAll(string(first), "|", "\\|")
}

// The picture and the table in the documents match the tree.
func TestArchitectureShowsTheTree(t *testing.T) {
	const document = "../../../docs/internals/architecture.md"
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	want := got
	for _, part := range []struct{ name, text string }{{"picture", picture(t)}, {"folders", folders(t)}} {
		begin, end := "<!-- "+part.name+" -->\n", "<!-- end of "+part.name+" -->"
		before, rest, found := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for the %s", document, part.name)
		}
		want = before + begin + part.text + end + after
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s shows another tree: run go test ./internal/test/layers -update", document)
	}
	if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
