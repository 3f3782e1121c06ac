package page_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/web/page"
)

func TestIndent(t *testing.T) {
	long := "[" + strings.Repeat("[],", 1<<20) + "[]]"
	deep := strings.Repeat("[", 3_000) + strings.Repeat("]", 3_000)
	for text, want := range map[string]string{
		`{}`:                          `{}`,
		`{"a":1,"b":[true,"x,[\"{"]}`: "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    \"x,[\\\"{\"\n  ]\n}",
		`{"a":`:                       `{"a":`,
		long:                          long,
		deep:                          deep,
	} {
		if got := string(page.Indent([]byte(text))); got != want {
			t.Errorf("%.30q of %d bytes: got %.60q of %d bytes", text, len(text), got, len(got))
		}
	}
}

// The indented text has the same value, and stays within the bound unless the original text exceeds it.
func FuzzIndent(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\\\""}]}`))
	f.Add([]byte(`[[[],[]],"]"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := page.Indent(text)
		if len(got) > max(4<<20, len(text)) {
			t.Fatalf("%d bytes became %d", len(text), len(got))
		}
		before, after := jsontext.Value(text).Clone(), jsontext.Value(got).Clone()
		if before.Compact() == nil && (after.Compact() != nil || string(before) != string(after)) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
