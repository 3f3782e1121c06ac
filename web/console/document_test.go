package console

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/policy"
)

// The starting documents are those of docs/policies, and the page offers each of them.
func TestStarts(t *testing.T) {
	t.Parallel()
	found, err := starts.ReadDir("starts")
	if err != nil || len(found) != len(startOptions())-1 {
		t.Fatalf("got %d documents, %v", len(found), err)
	}
	for _, option := range startOptions()[1:] {
		text, err := starts.ReadFile("starts/" + option.Value + ".json")
		if err != nil {
			t.Error(err)
		}
		want, err := os.ReadFile(filepath.Join("../../docs/policies", option.Value+".json"))
		if err != nil || string(text) != string(want) {
			t.Errorf("%s differs from the document in docs/policies, %v", option.Value, err)
		}
	}
}

// The editor's text is equivalent to the stored policy, for every policy of the library.
func TestEditableIsThePolicy(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/policies/*.json")
	if err != nil || len(files) < 7 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		edited, err := editable(stored.Document())
		if err != nil {
			t.Fatal(err)
		}
		again, err := policy.Parse([]byte(edited))
		if err != nil || string(again.Document()) != string(stored.Document()) {
			t.Errorf("%s became %s, %v", file, edited, err)
		}
		if strings.Contains(edited, `"on_error"`) || strings.Contains(edited, `"limits": {}`) || strings.Contains(edited, `"action_kind": "tool_call"`) {
			t.Errorf("%s has members with default values: %s", file, edited)
		}
	}
	unknown, err := editable(jsontext.Value(`{"policy_id":"p","name":"\u202e","rules":[{"rule_id":"r","newer":1,"mode":"shadow","requires":[],"when":"x","decision":"allow","on_error":"match"}],"tests":[],"state":"draft"}`))
	const want = `{"policy_id": "p","name": "\u202e","rules": [{"rule_id": "r","when": "x","requires": [],"decision": "allow","mode": "shadow","on_error": "match","newer": 1}],"tests": []}`
	if got := strings.NewReplacer("\n", "", "  ", "").Replace(unknown); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Applying the lines of a comparison to one version results in the other.
func TestCompareAppliesToTheOtherVersion(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	shown := func() jsontext.Value {
		var rules []string
		for range random.IntN(40) {
			rules = append(rules, fmt.Sprintf(`{"rule_id":"%d","priority":%d}`, random.IntN(20), random.IntN(2)))
		}
		return jsontext.Value(`{"policy_id":"p","name":"n","default":"allow","rules":[` + strings.Join(rules, ",") + `],"tests":[],"version":1}`)
	}
	for range 200 {
		v := compareView{Before: version{Text: shown()}, After: version{Text: shown()}}
		if err := v.compare(); err != nil {
			t.Fatal(err)
		}
		before, _ := canonicalLines(v.Before.Text)
		after, _ := canonicalLines(v.After.Text)
		rest := strings.SplitAfter(string(before), "\n")
		got, at, added, removed := "", 1, 0, 0
		for _, h := range v.Hunks {
			for ; at < h.Before; at++ {
				got, rest = got+rest[0], rest[1:]
			}
			if line := 1 + strings.Count(got, "\n"); line != h.After {
				t.Fatalf("a hunk at line %d states line %d", line, h.After)
			}
			for _, l := range h.Lines {
				if l.Mark != "+" {
					if rest[0] != l.Text+"\n" {
						t.Fatalf("line %d is %q, but the comparison has %q", at, rest[0], l.Text)
					}
					rest, at = rest[1:], at+1
				}
				switch l.Mark {
				case "-":
					removed++
					continue
				case "+":
					added++
				}
				got += l.Text + "\n"
			}
		}
		if got += strings.Join(rest, ""); got != string(after) || added != v.Added || removed != v.Removed {
			t.Fatalf("got %s, want %s; %d added, %d removed", got, after, v.Added, v.Removed)
		}
	}
}

// A long comparison is truncated.
func TestLongComparison(t *testing.T) {
	t.Parallel()
	many := func(n int) jsontext.Value {
		return jsontext.Value(`{"policy_id":"p","name":"n","rules":[` + strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d,", n), 6000), ",") + `],"default":"allow","tests":[]}`)
	}
	v := compareView{Before: version{Text: many(1)}, After: version{Text: many(2)}}
	if err := v.compare(); err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, h := range v.Hunks {
		shown += len(h.Lines)
	}
	if shown != maxShown || v.Added != 6000 || v.Removed != 6000 || v.Left != 8006 {
		t.Errorf("got %d lines, %d added, %d removed, %d left", shown, v.Added, v.Removed, v.Left)
	}
}

// Every message has a line or none, and the text is never read beyond its end.
func FuzzFindPlace(f *testing.F) {
	f.Add("{\"rules\":[\n{\"when\":1}]}", "rules[0].when is")
	f.Add("[1,{}]", `Member "1" is`)
	f.Add("{\"a\":\n", "a.b[1][2].c: x")
	f.Fuzz(func(t *testing.T, text, message string) {
		lines := 1 + strings.Count(text, "\n")
		if line := findPlace(text, message); line < 0 || line > lines {
			t.Errorf("got line %d of %d", line, lines)
		}
		value, wrong := readValue(text)
		if wrong != nil && (wrong.line < 1 || wrong.line > lines || wrong.cause == "") {
			t.Errorf("got %+v of %d lines", wrong, lines)
		}
		if wrong == nil && !value.IsValid() {
			t.Errorf("%q is not a value", value)
		}
	})
}
