package page

import (
	"fmt"
	"strings"
	"unicode"
)

// maxUnseen is the maximum number of invisible characters of a text that are shown by their code points.
const maxUnseen = 200

// Piece is a part of a stored text: plain text or one invisible character.
type Piece struct {
	Text string
	Code string // code point such as U+202E; "" for plain text
}

// splitText splits a stored text at its invisible characters. The template "text" shows their code points, because they
// can hide text from a reader and reorder other text. The bdi element alone does not isolate a stray U+2069. After
// maxUnseen characters, each further one is shown as U+FFFD.
//
// text is a string, a value of a string type, or bytes.
func splitText(text any) (pieces []Piece) {
	stored := readText(text)
	begin, unseen := 0, 0
	for i, r := range stored {
		if !isUnseen(r) {
			continue
		}
		if unseen++; unseen > maxUnseen {
			rest := strings.Map(replaceUnseen, stored[begin:])
			return append(pieces, Piece{Text: rest})
		}
		if begin < i {
			pieces = append(pieces, Piece{Text: stored[begin:i]})
		}
		pieces = append(pieces, Piece{Code: fmt.Sprintf("U+%04X", r)})
		begin = i + len(string(r))
	}
	if begin < len(stored) {
		pieces = append(pieces, Piece{Text: stored[begin:]})
	}
	return pieces
}

func readText(text any) string {
	switch t := text.(type) {
	case []byte:
		return string(t)
	case *string:
		if t == nil {
			return ""
		}
		return *t
	}
	return fmt.Sprint(text)
}

// showPlain returns a text for use without markup, such as the title of a page, with U+FFFD for each invisible
// character.
func showPlain(text any) string { return strings.Map(replaceUnseen, readText(text)) }

// isUnseen reports whether r is a control or format character or a line separator. Joiners are excluded, because
// scripts and emoji need them.
func isUnseen(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func replaceUnseen(r rune) rune {
	if isUnseen(r) {
		return unicode.ReplacementChar
	}
	return r
}
