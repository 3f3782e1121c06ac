package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

// matches reports whether a rule with that glob decides about tool.
func matches(t *testing.T, glob, tool string) bool {
	t.Helper()
	c := compile(t, testPolicy(policy.Rule{Tool: glob}))
	return decide(c, input(tool, "agt_1")).RuleID != policy.DefaultRule
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		glob, tool string
		want       bool
	}{
		{"acme.pay.refund", "acme.pay.refund", true},
		{"acme.pay.refund", "acme.pay.refunds", false},
		{"acme.pay.refund", "acme.pay", false},
		{"acme.pay", "acme.pay.refund", false},
		{"acme.pay.refund", "Acme.pay.refund", false},
		{"*", "acme", true},
		{"*", "acme.pay", false},
		{"*", "", false},
		{"**", "acme", true},
		{"**", "acme.pay.refund", true},
		{"**", "", false},
		{"acme.*", "acme.pay", true},
		{"acme.*", "acme", false},
		{"acme.*", "acme.pay.refund", false},
		{"acme.**", "acme", false},
		{"acme.**", "acme.pay", true},
		{"acme.**", "acme.pay.refund", true},
		{"acme.**", "acmex.pay", false},
		{"*.pay.*", "acme.pay.refund", true},
		{"*.pay.*", "acme.pays.refund", false},
		{"*.*.**", "acme.pay.refund", true},
		{"*.*.**", "acme.pay", false},
		{"*.refund.**", "acme.pay.refund.full", false},
		{"a:b/c-d_1.x", "a:b/c-d_1.x", true},
	} {
		if got := matches(t, tc.glob, tc.tool); got != tc.want {
			t.Errorf("%s of %q: got %v, want %v", tc.glob, tc.tool, got, tc.want)
		}
	}
}

// globRegexp is the oracle: the glob as a regular expression.
func globRegexp(glob string) *regexp.Regexp {
	segments := strings.Split(glob, ".")
	for i, s := range segments {
		switch s {
		case "*":
			segments[i] = `[^.]+`
		case "**":
			segments[i] = `[^.]+(?:\.[^.]+)*`
		default:
			segments[i] = regexp.QuoteMeta(s)
		}
	}
	return regexp.MustCompile(`\A(?:` + strings.Join(segments, `\.`) + `)\z`)
}

func FuzzGlob(f *testing.F) {
	toolName := regexp.MustCompile(`\A[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*\z`)
	for _, glob := range []string{"a.b", "*", "**", "a.*", "a.**", "*.b.**", "*.*"} {
		f.Add(glob, "a.b")
		f.Add(glob, "a.b.c")
		f.Add(glob, "a")
	}
	f.Fuzz(func(t *testing.T, glob, tool string) {
		if _, err := policy.Compile(testPolicy(policy.Rule{Tool: glob})); err != nil {
			return
		}
		if len(tool) > 256 || !toolName.MatchString(tool) {
			return
		}
		want := globRegexp(glob).MatchString(tool)
		if got := matches(t, glob, tool); got != want {
			t.Errorf("%q of %q: got %v, want %v", glob, tool, got, want)
		}
	})
}
