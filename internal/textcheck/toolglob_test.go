package textcheck_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// matchesRegexp is the oracle: the pattern as a regular expression.
func matchesRegexp(glob, tool string) bool {
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
	return regexp.MustCompile(`\A(?:` + strings.Join(segments, `\.`) + `)\z`).MatchString(tool)
}

func TestMatches(t *testing.T) {
	globs := []string{"a", "a.b", "a.b.c", "*", "**", "a.*", "a.**", "*.b", "*.b.*", "*.*.**", "a.*.c", "b.**", "*.c.**"}
	tools := []string{"", "a", "b", "a.b", "a.c", "b.b", "a.b.c", "b.b.c", "a.b.c.d", "A.b", "ab"}
	for _, glob := range globs {
		if !textcheck.ValidToolGlob(glob) {
			t.Errorf("%s: not valid", glob)
		}
		for _, tool := range tools {
			if got, want := textcheck.MatchTool(glob, tool), matchesRegexp(glob, tool); got != want {
				t.Errorf("%s of %q: got %v, want %v", glob, tool, got, want)
			}
		}
	}
}

func TestValid(t *testing.T) {
	for glob, want := range map[string]bool{
		"a:b/c-d_1.x": true, "*.*": true, "": false, "a.": false, ".a": false, "a..b": false, "**.a": false, "a*": false, "***": false,
		"a b": false, "é": false, strings.Repeat("a", 256): true, strings.Repeat("a", 257): false,
	} {
		if got := textcheck.ValidToolGlob(glob); got != want {
			t.Errorf("%q: got %v, want %v", glob, got, want)
		}
	}
}
