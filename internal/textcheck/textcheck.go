// Package textcheck checks texts that people and programs write: names, reasons and comments.
//
// Invariant: a text that passes is UTF-8, and its length is counted in code points.
package textcheck

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain reports whether s is UTF-8 of least to most code points without control
// characters (category Cc).
func Plain(s string, least, most int) bool {
	return Within(s, least, most) && !strings.ContainsFunc(s, unicode.IsControl)
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

// Within reports whether s is UTF-8 of least to most code points.
func Within(s string, least, most int) bool {
	n := utf8.RuneCountInString(s)
	return least <= n && n <= most && utf8.ValidString(s)
}
