package textcheck_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/agentledger/agentledger/internal/textcheck"
)

func TestPlain(t *testing.T) {
	for _, tc := range []struct {
		s             string
		plain, within bool // of 1 to 4 code points
	}{
		{"", false, false}, {"a", true, true}, {"äöü€", true, true}, {"äöü€x", false, false},
		{"a\nb", false, true}, {"a\x00", false, true}, {"a\u0085", false, true}, {"a\u202eb", true, true},
		{"a\xff", false, false}, {"\ufffd", true, true},
	} {
		if got := textcheck.Plain(tc.s, 1, 4); got != tc.plain {
			t.Errorf("Plain(%q): got %v", tc.s, got)
		}
		if got := textcheck.Within(tc.s, 1, 4); got != tc.within {
			t.Errorf("Within(%q): got %v", tc.s, got)
		}
	}
	if !textcheck.Plain("", 0, 4) {
		t.Error("no text at all is too short for 0")
	}
}

// An escaped JSON text has the same value and contains nothing that controls a terminal.
func TestEscapeJSON(t *testing.T) {
	for given, want := range map[string]string{
		`{"a":"plain é €"}`:           `{"a":"plain é €"}`,
		"{\n  \"a\": 1\n}":            "{\n  \"a\": 1\n}",
		"\"\u009b31m\"":               `"\u009b31m"`,
		"\"\u202emoc\u2066\"":         `"\u202emoc\u2066"`,
		"\"\x7f\u00ad\U000e0041\"":    `"\u007f\u00ad\udb40\udc41"`,
		"\"\u2028\\u001b\U0001f600\"": "\"\\u2028\\u001b\U0001f600\"",
	} {
		got := string(textcheck.EscapeJSON([]byte(given)))
		if got != want {
			t.Errorf("%q: got %s, want %s", given, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(given), &before) != nil || json.Unmarshal([]byte(got), &after) != nil {
			t.Errorf("%q: no JSON before or after: %s", given, got)
		}
		if text, ok := before.(string); ok && text != after {
			t.Errorf("%q: got %q", text, after)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q controls a terminal", got)
		}
	}
}

// A name contains no characters that are invisible or change the order of the text around them.
func TestName(t *testing.T) {
	for _, s := range []string{"Acme", "می\u200cخواهم", "👩\u200d🚀 Crew", "Über & Söhne", "株式会社　東京"} {
		if !textcheck.Name(s, 1, 100) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, r := range []rune{0, '\n', 0x7f, 0x85, 0xad, 0x61c, 0x180e, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2066, 0x2069, 0xfeff, 0xfff9, 0xe0001, 0xe0041} {
		if textcheck.Name("a"+string(r)+"b", 1, 100) {
			t.Errorf("%U is accepted", r)
		}
	}
}

// Text from elsewhere in a message of several lines cannot control the terminal, and the line breaks stay.
func TestPrintableLines(t *testing.T) {
	const given, want = "no \u202egnihton\x1b[2J\r\nnext\tline: é 株", "no ?gnihton?[2J?\nnext?line: é 株"
	if got := textcheck.PrintableLines(given); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
