package approval

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// mentions reports whether a principal, which is the sender's free text, contains a name of an account: its ID or its
// e-mail address. It finds the name anywhere in the text, in any spelling. Examples for ann@example.com:
// "Ann@Example.com ", "mailto:ann%40example.com", "Ann <ann@example.com>". Text that only looks like the name, such as
// letters of another script, does not match.
func mentions(principal, name string) bool {
	name = foldText(name)
	if name == "" {
		return false
	}
	return slices.ContainsFunc(forms(principal), func(text string) bool { return containsWord(text, name) })
}

// foldText folds case and width, and removes invisible characters: formatting characters, quotes and
// white space around the text.
func foldText(s string) string {
	s = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
	s = strings.Map(func(r rune) rune {
		if r == '\u3002' || r == '\uff61' { // full stops of addresses in other scripts
			return '.'
		}
		if r == '"' || r == '\\' || unicode.In(r, unicode.Cf, unicode.Mn, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// containsWord reports whether text contains word, and the surrounding characters do not make it part of a longer
// address or ID. For example, "joann@example.com" does not contain "ann@example.com".
func containsWord(text, word string) bool {
	for rest, before := text, rune(0); ; {
		at := strings.Index(rest, word)
		if at < 0 {
			return false
		}
		if at > 0 {
			before, _ = utf8.DecodeLastRuneInString(rest[:at])
		}
		behind := rest[at+len(word):]
		if !isAddressRune(before) && !continuesAddress(behind) {
			return true
		}
		before, _ = utf8.DecodeLastRuneInString(word)
		rest = behind
	}
}

// isAddressRune reports whether a character before an address may belong to the address.
func isAddressRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r != 0 && strings.ContainsRune("._+-%@", r)
}

// continuesAddress reports whether a text continues an address. A dot alone ends a sentence.
func continuesAddress(s string) bool {
	s = strings.TrimLeft(s, ".")
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' || r == '@')
}
