package page

import (
	"fmt"
	"strings"
	"unicode"
)

// maxUnseen is how many unseen characters of one text are shown by their numbers.
const maxUnseen = 200

// Piece is a part of a stored text: plain text, or one character that a reader does not see.
type Piece struct {
	Text string
	Code string // such as U+202E; "" for plain text
}

// splitText splits a stored text at its unseen characters. The template "text" shows them by their numbers, because
// they can hide text from a reader, and change the order of other text. The element bdi alone does not hold against a
// stray U+2069. Beyond maxUnseen each further one is U+FFFD.
//
// The text is a string, a type of strings, or bytes.
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

// showPlain returns a text for places without markup, such as the title of a page, with U+FFFD for each unseen character.
func showPlain(text any) string { return strings.Map(replaceUnseen, readText(text)) }

// isUnseen reports whether a character is a control, a format or a separator of lines. Joiners within a word are
// not, because scripts and emoji need them.
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
