package jcs

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Difference is the first place at which a JSON text differs from its canonical form. It repeats at
// most a number or an escape of the text, bounded by the constants of this package, and no other
// value.
type Difference struct {
	At        string `json:"at"`                 // JSON pointer, "" for the whole text
	Reason    string `json:"reason"`             // ReasonNumber, …
	Sent      string `json:"sent,omitzero"`      // the number, or the escape in a string
	Canonical string `json:"canonical,omitzero"` // its canonical form
}

// Reasons of a Difference.
const (
	ReasonNumber     = "number"
	ReasonString     = "string"
	ReasonOrder      = "order"       // of members
	ReasonWhiteSpace = "white_space" // between tokens
)

const (
	maxDifferenceTokens = 4096 // tokens that are compared
	maxDifferencePath   = 256  // bytes
	maxDifferenceText   = 32   // bytes of a number
	maxDifferenceEscape = 12   // bytes of a string: an escaped surrogate pair
)

// FindDifference returns the first difference between a text and its canonical form. It reports
// numbers and strings before the order of members and white space, because clients that serialize
// their own objects rarely think of them. found is false if the text is canonical or has no
// difference in its first tokens. Canonicalize must have accepted text.
func FindDifference(text, canonical []byte) (d Difference, found bool) {
	if bytes.Equal(text, canonical) {
		return d, false
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	for range maxDifferenceTokens {
		kind := decoder.PeekKind()
		if kind != '"' && kind != '0' {
			if _, err := decoder.ReadToken(); err != nil { // the end of the text
				return differenceOfForm(text, canonical), true
			}
			continue
		}
		literal, err := decoder.ReadValue()
		if err != nil {
			return d, false
		}
		if d, found = differenceOfLiteral(literal, kind == '0'); found {
			d.At = cutText(string(decoder.StackPointer()), maxDifferencePath)
			return d, true
		}
	}
	return d, false
}

// differenceOfLiteral compares a number or a string with its canonical form.
func differenceOfLiteral(literal []byte, isNumber bool) (d Difference, found bool) {
	wrapped, err := Canonicalize(append(append([]byte(`{"":`), literal...), '}'), MaxDepth)
	if err != nil {
		return d, false
	}
	canonical := wrapped[len(`{"":`) : len(wrapped)-1]
	if bytes.Equal(literal, canonical) {
		return d, false
	}
	if isNumber {
		return Difference{Reason: ReasonNumber, Sent: cutText(string(literal), maxDifferenceText),
			Canonical: cutText(string(canonical), maxDifferenceText)}, true
	}
	for {
		sent, want := firstCharacter(literal), firstCharacter(canonical)
		if sent != want || sent == "" {
			return Difference{Reason: ReasonString, Sent: sent, Canonical: want}, true
		}
		literal, canonical = literal[len(sent):], canonical[len(want):]
	}
}

// firstCharacter returns the first character of a string literal, or the whole escape that begins
// it.
func firstCharacter(literal []byte) string {
	_, size := utf8.DecodeRune(literal)
	if len(literal) > 1 && literal[0] == '\\' {
		size = 2
		if literal[1] == 'u' {
			size = 6
		}
		if next := literal[min(size, len(literal)):]; size == 6 && bytes.HasPrefix(next, []byte(`\u`)) {
			size = maxDifferenceEscape
		}
	}
	return string(literal[:min(size, len(literal))])
}

// differenceOfForm distinguishes white space from another order of members.
func differenceOfForm(text, canonical []byte) Difference {
	compact := jsontext.Value(bytes.Clone(text))
	if compact.Compact() == nil && bytes.Equal(compact, canonical) {
		return Difference{Reason: ReasonWhiteSpace}
	}
	return Difference{Reason: ReasonOrder}
}

// cutText truncates s to at most limit bytes, without splitting a character.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
