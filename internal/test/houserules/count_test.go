package houserules_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/test/houserules"
)

func TestCountProse(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want houserules.Prose
	}{
		"noun":         {"What is not pinned has nothing out.", houserules.Prose{Words: 7, Nominal: 1, Sentences: 1}},
		"question":     {"What is written first?", houserules.Prose{Words: 4, Sentences: 1}},
		"indirect":     {"It says what a package is.", houserules.Prose{Words: 6, Sentences: 1}},
		"of it":        {"The rest of it is code, most of them not.", houserules.Prose{Words: 10, Partitive: 2, Sentences: 1}},
		"whoever":      {"Whoever reads decides. Nobody else.", houserules.Prose{Words: 5, Anonymous: 2, Sentences: 2}},
		"relative":     {"A person who votes.", houserules.Prose{Words: 4, Sentences: 1}},
		"quoted":       {"The word \"what\" of `it`.", houserules.Prose{Words: 3, Sentences: 1}},
		"code":         {"An example:\n\twhat := whoever(of, it)\nends.", houserules.Prose{Words: 3, Sentences: 2}},
		"for example":  {"A tool, for example acme.pay, is listed.", houserules.Prose{Words: 8, Sentences: 1, Examples: 1}},
		"list of long": {"- a b c d e f g h i j k l m n o p q r s t u v w x y z\n- short", houserules.Prose{Words: 27, Sentences: 2, Long: 1}},
	} {
		if got := houserules.CountProse(tc.text); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

// A tree that breaks each rule once: a test that finds nothing there could not fail.
func TestFindsWhatIsWrong(t *testing.T) {
	root := t.TempDir()
	body := "package a\n\nimport (\n\t\"os\"\n\n\t\"github.com/agentledger/agentledger/b\"\n)\n\n" +
		"// What it is.\nfunc add() { os.Rename(b.X, b.X) }\n\ntype I interface{ A(); B(); C(); D(); E(); F(); G() }\n\nfunc long() {\n"
	for range houserules.MaxFunctionLines {
		body += "\t_ = 1\n"
	}
	body += "}\n"
	for range houserules.MaxFileLines {
		body += "\n"
	}
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
	var rules []string
	for _, m := range tree.OverLimit() {
		rules = append(rules, m.Rule)
	}
	slices.Sort(rules)
	if want := []string{"file-lines", "function-lines", "interface-methods", "prose-what"}; !slices.Equal(rules, want) {
		t.Errorf("got %v, want %v", rules, want)
	}
	if got := tree.Edges(); len(got) != 1 || got[0] != (houserules.Edge{From: "a", To: "b"}) {
		t.Errorf("edges: got %v", got)
	}
	if got := tree.Places(houserules.Mechanisms()[1]); !slices.Equal(got, []string{"a"}) {
		t.Errorf("places of a durable file: got %v", got)
	}
	if tree.FunctionsNamed("add") != 1 || tree.FunctionNames()["a"].Mean() != 3.5 {
		t.Errorf("names: got %+v", tree.FunctionNames())
	}
}
