// Package textcheck checks texts that people and programs write: names, reasons, comments, tool names and patterns of tool
// names.
//
// Invariant: a text that passes is UTF-8. Its length is counted in code points, and the length of tool names and their
// patterns, which are ASCII, in bytes.
package textcheck

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain reports whether s is UTF-8 of least to most code points without control
// characters (category Cc).
func Plain(s string, least, most int) bool {
	return Within(s, least, most) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Name reports whether s can be the name of something that people read: Plain, and without characters that are
// invisible or change the order of the text around them. These are format characters (Cf, for example U+202E and U+200B)
// and separators of lines and paragraphs (U+2028, U+2029). The joiners U+200C and U+200D are allowed, because scripts
// and emoji need them.
func Name(s string, least, most int) bool {
	return Plain(s, least, most) && !strings.ContainsFunc(s, misleads)
}

func misleads(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) && r != nonJoiner && r != joiner
}

// Printable returns s with a question mark for each character that a terminal does not
// print, so that text from elsewhere can't control the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// PrintableLines is Printable for a text of several lines, which stay lines.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// EscapeJSON returns a JSON text, in which each character that a terminal does not print is written as \u and
// four digits. The value stays the same. White space between members stays too.
func EscapeJSON(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case unicode.IsPrint(r) || r == '\n':
			escaped = utf8.AppendRune(escaped, r)
		case r < 0x10000:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		}
	}
	return escaped
}

// Within reports whether s is UTF-8 of least to most code points.
func Within(s string, least, most int) bool {
	n := utf8.RuneCountInString(s)
	return least <= n && n <= most && utf8.ValidString(s)
}
