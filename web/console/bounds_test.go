package console

import (
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/web/page"
)

// A text of 1 MiB with the maximum nesting takes milliseconds. A search that compares the position of each value would
// take minutes, because the text has 9,000 steps at each of them.
func TestHostileTextsAreReadOnce(t *testing.T) {
	t.Parallel()
	const size, depth = 1 << 20, 9_000
	nested := strings.Repeat("[", depth) + strings.Repeat("1,", size/2-depth) + "1" + strings.Repeat("]", depth)
	steps := "rules" + strings.Repeat("[0]", 300) + ".when is"
	for name, text := range map[string]string{
		"deep lists": `{"rules":` + nested + `}`,
		"deep names": strings.Repeat(`{"rules":`, depth) + "[" + strings.Repeat("1,", size/2) + "1]" + strings.Repeat("}", depth),
		"one name":   `{` + strings.Repeat(`"a":1,`, size/6) + `"rules":[]}`,
		"many rules": `{"rules":[` + strings.Repeat(`{},`, size/3) + `{}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			if line := findPlace(text, steps); line != 1 {
				t.Errorf("got line %d, want 1", line)
			}
			_, wrong := readValue(text)
			if valid := name == "many rules"; valid != (wrong == nil) {
				t.Errorf("got %v", wrong)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestDeepTextIsRejected(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("[", maxNesting) + "\n" + strings.Repeat("]", maxNesting)
	if _, wrong := readValue(text); wrong != nil {
		t.Errorf("%d deep: got %v, want none", maxNesting, wrong)
	}
	_, wrong := readValue("[\n" + text + "]")
	if want := (misread{2, "values stand more than 68 deep within others"}); wrong == nil || *wrong != want {
		t.Errorf("got %+v, want %+v", wrong, want)
	}
}

// The size of an indented text is bounded, on the page of each version that was stored with it.
func TestIndentIsBounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5_000) + strings.Repeat("1,", 100_000) + "1" + strings.Repeat("]", 5_000)
	if got := indent([]byte(deep)); got != deep {
		t.Errorf("got %d bytes, want the text itself", len(got))
	}
	if got := string(page.Indent([]byte(`{"a":[1]}`))); got != "{\n  \"a\": [\n    1\n  ]\n}" {
		t.Errorf("got %s", got)
	}
}
