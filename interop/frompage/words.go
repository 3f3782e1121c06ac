package frompage

import (
	"encoding/base64"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file contains the words of the tables, as "Words" defines them: each is a function that reports whether a value
// matches it.

// table maps each member to the word that its value must match.
type table map[string]func(value) bool

// wrong returns the first member, by name, that is absent or does not match the table, or "".
func (t table) wrong(v value) string {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if member, there := v.object[name]; !there || !t[name](member) {
			return name
		}
	}
	return ""
}

// holds reports whether v is an object in which every member of the table is present and matches. Other members are
// ignored.
func (t table) holds(v value) bool { return v.kind == isObject && t.wrong(v) == "" }

// holdsOnly is holds, without other members.
func (t table) holdsOnly(v value) bool {
	return t.holds(v) && len(v.object) == len(t)
}

// ifThere returns the table without the members that v does not have, for members that may be absent.
func (t table) ifThere(v value) table {
	there := table{}
	for name, fits := range t {
		if _, ok := v.object[name]; ok {
			there[name] = fits
		}
	}
	return there
}

func anyText(v value) bool  { return v.kind == isText }
func someText(v value) bool { return v.kind == isText && v.text != "" }
func boolean(v value) bool  { return v.kind == isBoolean }
func object(v value) bool   { return v.kind == isObject }
func one(v value) bool      { return v.kind == isNumber && v.number == 1 }

// whole reports whether a number is whole and from 0 to most. Its value counts: 4.0 is whole.
func whole(v value, most float64) bool {
	return v.kind == isNumber && v.number >= 0 && v.number <= most && v.number == math.Trunc(v.number)
}

func natural(v value) bool  { return whole(v, 1<<53-1) }
func positive(v value) bool { return natural(v) && v.number != 0 }

func hash(v value) bool     { return v.kind == isText && isHash(v.text) }
func someHash(v value) bool { return hash(v) && v.text != strings.Repeat("0", 64) }

// nullOr accepts null in addition to what fits.
func nullOr(fits func(value) bool) func(value) bool {
	return func(v value) bool { return v.kind == isNull || fits(v) }
}

// listOf accepts a list, possibly empty, of what fits.
func listOf(fits func(value) bool) func(value) bool {
	return func(v value) bool {
		for _, element := range v.list {
			if !fits(element) {
				return false
			}
		}
		return v.kind == isList
	}
}

// oneOf accepts one of the given texts.
func oneOf(texts ...string) func(value) bool {
	return func(v value) bool {
		for _, text := range texts {
			if v.kind == isText && v.text == text {
				return true
			}
		}
		return false
	}
}

// limits accepts null or a list of any values, of at most 8 levels with the list as the first.
func limits(v value) bool {
	return v.kind == isNull || v.kind == isList && levels(v) <= 8
}

// levels returns how deeply objects and lists are nested in v.
func levels(v value) int {
	inside := 0
	for _, element := range v.list {
		inside = max(inside, levels(element))
	}
	for _, member := range v.object {
		inside = max(inside, levels(member))
	}
	if v.kind == isList || v.kind == isObject {
		return inside + 1
	}
	return 0
}

// decodeBase64 reads the only spelling of "Words": standard alphabet, padding, unused bits 0, no line ends.
func decodeBase64(text string) ([]byte, bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, err == nil && base64.StdEncoding.EncodeToString(raw) == text
}

// signature accepts a text that is the base64 of 64 bytes.
func signature(v value) bool {
	raw, ok := decodeBase64(v.text)
	return v.kind == isText && ok && len(raw) == 64
}

// principal accepts 1 to 256 code points, none of them a control character.
func principal(v value) bool {
	count := utf8.RuneCountInString(v.text)
	return v.kind == isText && 1 <= count && count <= 256 && !strings.ContainsFunc(v.text, isControl)
}

// isControl reports whether a character is a control character: U+0000 to U+001F and U+007F to U+009F.
func isControl(c rune) bool { return c <= 0x1f || 0x7f <= c && c <= 0x9f }
