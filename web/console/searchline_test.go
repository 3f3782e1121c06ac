package console

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParseSearch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]searchLine{
		"":           {},
		"  refund  ": {Words: "refund"},
		`tool:payments.refund amount_usd:>500 outcome:refused`: {Terms: []term{{"tool", "", "payments.refund"}, {"amount_usd", ">", "500"}, {"outcome", "", "refused"}}},
		`agent:"Refund bot" damaged in  transit`:               {Terms: []term{{"agent", "", "Refund bot"}}, Words: "damaged in transit"},
		`"https://example.com/a b" x`:                          {Words: "https://example.com/a b x"},
		`agent:"a \"b\" \\`:                                    {Terms: []term{{"agent", "", `a "b" \`}}},
		`order.id:A-1 items[0].price:>=2 customer:~"Zoë O"`:    {Terms: []term{{"order.id", "=", "A-1"}, {"items[0].price", ">=", "2"}, {"customer", "~", "Zoë O"}}},
		`payload.tool:x payload.amount:!=3`:                    {Terms: []term{{"tool", "=", "x"}, {"amount", "!=", "3"}}},
		`a:>1 a:<2`:                                            {Terms: []term{{"a", ">", "1"}, {"a", "<", "2"}}},
		`note:=""`:                                             {Terms: []term{{"note", "=", ""}}},
		`tool:>x`:                                              {Terms: []term{{"tool", "", ">x"}}},
		`ümlaut:x`:                                             {Words: "ümlaut:x"},
	} {
		got, problems := parseSearch(text)
		if len(problems) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %q, want %+v", text, got, problems, want)
		}
		if again, problems := parseSearch(got.String()); len(problems) > 0 || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: the line %s is parsed to %+v, %q", text, got, again, problems)
		}
	}
	for text, want := range map[string]string{
		"tool:":                             "tool: needs a value, such as tool:payments.refund.",
		"tool:a agent: tool:b":              "agent: needs a value, such as agent:\"Refund bot\". tool: is given more than once.",
		strings.Repeat("x", maxLine+1):      "The search has more than 1024 bytes.",
		strings.Repeat("a:>1 ", maxTerms+1): "The search has more than 24 terms.",
		strings.Repeat("a:>1 ", maxTerms):   "",
		"payload.:x":                        "payload.: needs a value, such as payload.:x.",
	} {
		if _, problems := parseSearch(text); strings.Join(problems, " ") != want {
			t.Errorf("%.40s: got %q, want %q", text, problems, want)
		}
	}
}

// A parsed line is bounded, and its text parses to itself.
func FuzzParseSearch(f *testing.F) {
	for _, text := range []string{`tool:a agent:"x y" b:>5 c`, `"`, `a:"\`, `payload.tool:=a payload.payload.x:~"b`, "\x00:\n", `"a"b:c`, `x:=`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		line, problems := parseSearch(text)
		if len(line.Terms) > maxTerms || len(line.Words) > maxLine {
			t.Fatalf("%q: %d terms", text, len(line.Terms))
		}
		if len(problems) > 0 || len(line.String()) > maxLine {
			return
		}
		again, problems := parseSearch(line.String())
		if fmt.Sprintf("%q", again) != fmt.Sprintf("%q", line) || len(problems) > 0 {
			t.Fatalf("%q: got %q, from its text %q %q: %q", text, line, line.String(), again, problems)
		}
	})
}

func TestParsePeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 16, 20, 30, 5e6, time.UTC) // a Sunday
	for word, want := range map[string]string{
		"today": "2026-11-29T00:00:00Z 2026-11-30T00:00:00Z", "Yesterday": "2026-11-28T00:00:00Z 2026-11-29T00:00:00Z",
		"-7d": "2026-11-22T00:00:00Z 2026-11-23T00:00:00Z", "-0d": "2026-11-29T00:00:00Z 2026-11-30T00:00:00Z", "-6h": "2026-11-29T10:00:00Z 2026-11-29T10:00:00Z",
		"this-week": "2026-11-23T00:00:00Z 2026-11-30T00:00:00Z", "last-week": "2026-11-16T00:00:00Z 2026-11-23T00:00:00Z",
		"this-month": "2026-11-01T00:00:00Z 2026-12-01T00:00:00Z", "last-month": "2026-10-01T00:00:00Z 2026-11-01T00:00:00Z",
		"this-year": "2026-01-01T00:00:00Z 2027-01-01T00:00:00Z", "last-year": "2025-01-01T00:00:00Z 2026-01-01T00:00:00Z",
		"nov": "2026-11-01T00:00:00Z 2026-12-01T00:00:00Z", "december": "2025-12-01T00:00:00Z 2026-01-01T00:00:00Z", "feb": "2026-02-01T00:00:00Z 2026-03-01T00:00:00Z",
		"2026": "2026-01-01T00:00:00Z 2027-01-01T00:00:00Z", "2026-11": "2026-11-01T00:00:00Z 2026-12-01T00:00:00Z", "2026-11-03": "2026-11-03T00:00:00Z 2026-11-04T00:00:00Z",
		"2026-11-03t12:00": "2026-11-03T12:00:00Z 2026-11-03T12:00:00Z", "2026-11-03T12:00:05Z": "2026-11-03T12:00:05Z 2026-11-03T12:00:05Z",
		"2026-11-03T12:00:00+02:00": "2026-11-03T10:00:00Z 2026-11-03T10:00:00Z",
		"":                          "none", "no": "none", "noven": "none", "-d": "none", "-7w": "none", "-999999999d": "none", "2026-13": "none", "1969": "none", "tomorrow": "none", "7d": "none",
	} {
		got := "none"
		if p, ok := parsePeriod(word, now); ok {
			got = p.Begin.Format(time.RFC3339) + " " + p.End.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}
