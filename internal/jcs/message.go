package jcs

import (
	"fmt"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
)

// Why a number is refused, and what to do instead.
const (
	notExact   = "is an integer that canonical JSON (RFC 8785) would change: send it as a string"
	tooPrecise = "has more than 17 significant digits: round it or send it as a string"
	tooLarge   = "is too large for a JSON number: send it as a string"
	tooSmall   = "is too close to zero for a JSON number: send 0 or send it as a string"
)

// maxName is how many characters of a member's name an error shows.
const maxName = 64

func (s *scanner) badNumber(why string) error {
	return refuse("A number in " + s.where(s.members.count) + " " + why)
}

func (s *scanner) badText(f flaw) error {
	if f == malformedText {
		return s.malformed()
	}
	return refuse("A string in " + s.where(s.members.count) + " " + f.String())
}

// badName is badText for a name of the object whose members begin at base.
func (s *scanner) badName(f flaw, base int) error {
	if f == malformedText {
		return s.malformed()
	}
	return refuse("A member name in " + s.where(base) + " " + f.String())
}

func (s *scanner) malformed() error {
	if s.members.count == 0 {
		return refuse("The body is not valid JSON")
	}
	return refuse("The body is not valid JSON in or after " + s.where(s.members.count))
}

func (s *scanner) tooDeep() error {
	return refuse(fmt.Sprintf("Nesting in %s is deeper than %d levels: make it flatter or send a part as a string",
		s.where(s.members.count), s.maxDepth))
}

func duplicate(name []byte) error {
	return refuse("Member " + quoteName(name) + " appears twice: send it once")
}

func refuse(message string) error { return fault.New(fault.Invalid, message) }

// String says what is wrong, to stand behind "A string".
func (f flaw) String() string {
	switch f {
	case notUTF8:
		return "is not valid UTF-8: send UTF-8"
	case loneSurrogate:
		return "has half of a surrogate pair: send whole characters"
	case malformedText:
		return "is not valid JSON"
	}
	return "is sound"
}

// where names the newest of the first n open members.
func (s *scanner) where(n int) string {
	if n == 0 {
		return "the body"
	}
	return "member " + quoteName(s.members.at(n-1).name)
}

// quoteName returns name in quotes, in printable ASCII, cut to maxName
// characters without cutting an escape.
func quoteName(name []byte) string {
	quoted := []byte{'"'}
	for len(name) > 0 {
		r, n := utf8.DecodeRune(name)
		name = name[n:]
		var next []byte
		switch {
		case r == '"' || r == '\\':
			next = []byte{'\\', byte(r)}
		case r >= ' ' && r < 0x7f:
			next = []byte{byte(r)}
		case r <= 0xffff:
			next = fmt.Appendf(nil, `\u%04x`, r)
		default:
			next = fmt.Appendf(nil, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		}
		if len(quoted)-1+len(next) > maxName {
			break
		}
		quoted = append(quoted, next...)
	}
	return string(append(quoted, '"'))
}
