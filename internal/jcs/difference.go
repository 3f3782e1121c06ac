package jcs

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Difference is the first place at which a JSON text is not in its canonical form. It repeats a
// number or an escape of the text at most, in the bounds of this package, and no other value.
type Difference struct {
	At        string `json:"at"`                 // JSON pointer, "" for the whole text
	Reason    string `json:"reason"`             // ReasonNumber, …
	Sent      string `json:"sent,omitzero"`      // of a number, or the escape in a string
	Canonical string `json:"canonical,omitzero"` // likewise
}

// The reasons of a Difference.
const (
	ReasonNumber     = "number"
	ReasonString     = "string"
	ReasonOrder      = "order"       // of members
	ReasonWhiteSpace = "white_space" // between tokens
)

const (
	maxDifferenceTokens = 4096 // that are looked at
	maxDifferencePath   = 256  // bytes
	maxDifferenceText   = 32   // bytes of a number
	maxDifferenceEscape = 12   // bytes of a string: an escaped surrogate pair
)

// FindDifference returns the first difference of a text to its canonical form. Numbers and strings
// come before the order of members and white space, because clients that serialize their own objects
// seldom have these in mind. found is false for a text in canonical form, and for one without a
// difference among its first tokens. text has been accepted by Canonicalize.
func FindDifference(text, canonical []byte) (d Difference, found bool) {
	if bytes.Equal(text, canonical) {
		return d, false
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	for range maxDifferenceTokens {
		kind := decoder.PeekKind()
		if kind != '"' && kind != '0' {
			if _, err := decoder.ReadToken(); err != nil { // the end
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

// firstCharacter returns the first character of a string's literal, or the escape that stands there.
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

// differenceOfForm tells white space from another order of members.
func differenceOfForm(text, canonical []byte) Difference {
	compact := jsontext.Value(bytes.Clone(text))
	if compact.Compact() == nil && bytes.Equal(compact, canonical) {
		return Difference{Reason: ReasonWhiteSpace}
	}
	return Difference{Reason: ReasonOrder}
}

// cutText returns at most limit bytes of whole characters.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
