package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

// Every policy of the library compiles and passes its own tests, and each of its rules decides one of
// them: a test that no rule can fail proves nothing.
func TestLibrary(t *testing.T) {
	files, err := filepath.Glob("../docs/policies/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		p.ID, p.Version = "library", 1
		c := compile(t, p)
		failures, err := c.RunTests(t.Context(), p.Tests)
		if err != nil {
			t.Fatal(err)
		}
		for _, failure := range failures {
			t.Errorf("%s: %s", file, failure)
		}
		heard := map[string]bool{}
		for i := range p.Tests {
			e := c.Evaluate(p.Tests[i].Input)
			o := e.Settle(p.Tests[i].Exceeds)
			heard[o.RuleID] = true
			for _, rule := range o.Shadow {
				heard[rule] = true
			}
		}
		for _, r := range p.Rules {
			if !heard[r.ID] {
				t.Errorf("%s: no test is decided by rule %s", file, r.ID)
			}
		}
	}
}
