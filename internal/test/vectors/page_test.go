package vectors

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify"
)

// Others write verifiers from the tables of docs/spec/bundle.md. They are compared with the code: each table has
// exactly the members of its document, and the code accepts exactly the values of each member that the table's words
// mean.

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "spec", "bundle.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table returns the rows of the page's table whose first header cell is head: the first two cells of each, by the first
// one. A name in the first cell has no backquotes.
func table(t *testing.T, page, head string) map[string]string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n| "+head+" |")
	if !found {
		t.Fatalf("no table of %s", head)
	}
	rows := map[string]string{}
	for _, line := range strings.Split(rest, "\n")[2:] {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") {
			return rows
		}
		rows[strings.Trim(strings.TrimPrefix(cells[0], "| "), "`")] = strings.TrimSuffix(cells[1], " |")
	}
	return rows
}

// membersOf returns the JSON names of a struct's members.
func membersOf[T any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// document is a kind of document: a valid one, and a function that reports whether a text is one.
type document struct {
	head    string // head of the table of its members
	members []string
	closed  bool // no other members
	good    map[string]any
	within  func(good map[string]any) map[string]any // returns the object whose members the table has
	accepts func(t *testing.T, d map[string]any) bool
}

// documentKinds are the documents of the page, in the page's order.
func documentKinds(t *testing.T) []document {
	bundle := goodBundle(t)
	record, envelope := objectOf(t, bundle["record"].(string)), objectOf(t, bundle["envelope"].(string))
	record["policy"].(map[string]any)["limits"] = []any{} // which goes with evaluated and without
	itself := func(d map[string]any) map[string]any { return d }
	inside := func(name string) func(map[string]any) map[string]any {
		return func(d map[string]any) map[string]any { return d[name].(map[string]any) }
	}
	keys := map[string]any{"keys": []any{
		map[string]any{"vkey": "x", "use": "grant", "from_size": 0, "to_size": nil},
		map[string]any{"vkey": goodVector(t).Input["key"], "use": "log", "from_size": 0, "to_size": nil},
	}}
	firstKey := func(d map[string]any) map[string]any { return d["keys"].([]any)[0].(map[string]any) }
	ofEnvelope := slices.Sorted(maps.Keys(envelope))
	ofEnvelope = slices.DeleteFunc(ofEnvelope, func(name string) bool { return name == "salt" }) // a member that this format does not have
	return []document{
		{"Member | Value | Meaning |\n|---|---|---|\n| `version`", membersOf[verify.Bundle](), false, bundle, itself, isBundle},
		{"Member of a proof", membersOf[verify.Inclusion](), true, bundle, inside("inclusion"), isBundle},
		{"Member | Value | Meaning |\n|---|---|---|\n| `v`", membersOf[event.Record](), true, record, itself, isRecord},
		{"Member of `policy`", membersOf[event.Policy](), true, record, inside("policy"), isRecord},
		{"Member | Value |\n|---|---|\n| `schema_version`", ofEnvelope, false, envelope, itself, isEnvelope},
		{"Member of a key", []string{"from_size", "to_size", "use", "vkey"}, false, keys, firstKey, isKeys},
	}
}

func isBundle(t *testing.T, d map[string]any) bool {
	_, err := verify.ParseBundle(textOf(t, d))
	return err == nil
}

func isRecord(t *testing.T, d map[string]any) bool {
	_, err := event.ParseRecord(canonicalOf(t, d))
	return err == nil
}

func isEnvelope(t *testing.T, d map[string]any) bool {
	_, err := event.Parse(canonicalOf(t, d), event.Options{Server: true})
	return err == nil
}

func isKeys(t *testing.T, d map[string]any) bool {
	_, err := verify.ParseKeys(textOf(t, d))
	return err == nil
}

// rowsOf returns the table of a document, also if it has the same head as others and begins with its first row.
func rowsOf(t *testing.T, page string, d document) map[string]string {
	if at := strings.LastIndex(d.head, "\n"); at >= 0 {
		i := strings.Index(page, "\n| "+d.head+" |")
		if i < 0 {
			t.Fatalf("no table %q", d.head)
		}
		return table(t, page[i:], "Member")
	}
	return table(t, page, d.head)
}

func TestPageHasEachMember(t *testing.T) {
	text := page(t)
	for _, d := range documentKinds(t) {
		if got := slices.Sorted(maps.Keys(rowsOf(t, text, d))); !slices.Equal(got, d.members) {
			t.Errorf("%s: the page has %q, want %q", d.head, got, d.members)
		}
		other := copyOf(t, d.good)
		d.within(other)["later_member"] = []any{1}
		if got := d.accepts(t, other); got == d.closed {
			t.Errorf("%s: a member more is accepted: %v", d.head, got)
		}
	}
}

func TestPageHasEachVerdict(t *testing.T) {
	_, verdicts, _ := strings.Cut(page(t), "\n## The verdicts\n")
	for _, name := range membersOf[verify.Report]() {
		six := strings.HasSuffix(name, "_ok") && name != "directory_ok"
		if got := strings.Contains(verdicts, "\n**`"+name+"`**"); got != six {
			t.Errorf("%s: on the page %v, want %v", name, got, six)
		}
	}
}

// The code accepts a value of a member exactly if it is one according to the words of the page.
func TestPageSaysEachValue(t *testing.T) {
	text, used := page(t), map[string]bool{}
	for _, d := range documentKinds(t) {
		if !d.accepts(t, d.good) {
			t.Fatalf("%s: the good one is refused", d.head)
		}
		for member, words := range rowsOf(t, text, d) {
			isValue := valuesOf(t, words, used)
			for _, p := range probes() {
				bent := copyOf(t, d.good)
				p.put(d.within(bent), member)
				if got, want := d.accepts(t, bent), isValue(p); got != want {
					t.Errorf("%s %.60q: accepted %v, but %q", member, p.text, got, words)
				}
			}
		}
	}
	for word := range table(t, text, "Word") {
		if !used[word] {
			t.Errorf("the page's word %q is in no table, or not known here", word)
		}
	}
}

func goodVector(t *testing.T) Vector {
	t.Helper()
	f, err := Read(root, "bundle")
	if err != nil {
		t.Fatal(err)
	}
	return f.Vectors[slices.IndexFunc(f.Vectors, func(v Vector) bool { return v.Name == "full" })]
}

func goodBundle(t *testing.T) map[string]any {
	return objectOf(t, goodVector(t).Input["bundle"].(string))
}

func objectOf(t *testing.T, text string) (d map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func textOf(t *testing.T, d map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// canonicalOf returns a document's canonical form, or nil if it has none.
func canonicalOf(t *testing.T, d map[string]any) jsontext.Value {
	text, err := jcs.Canonicalize(textOf(t, d), jcs.MaxDepth)
	if err != nil {
		return nil
	}
	return text
}

func copyOf(t *testing.T, d map[string]any) map[string]any { return objectOf(t, string(textOf(t, d))) }
