package jcs

import (
	"fmt"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
)

// Reasons for rejecting a number, each with advice.
const (
	notExact   = "is an integer that canonical JSON (RFC 8785) would change: send it as a string"
	tooPrecise = "has more than 17 significant digits: round it or send it as a string"
	tooLarge   = "is too large for a JSON number: send it as a string"
	tooSmall   = "is too close to zero for a JSON number: send 0 or send it as a string"
	tooLong    = "has more than 128 significant digits or an exponent beyond 9999: send it as a string"
)

// maxName is the maximum number of characters of a member name in an error.
const maxName = 64

func (s *scanner) numberError(why string) error {
	return invalidError("A number in " + s.describePlace(s.members.count) + " " + why)
}

func (s *scanner) stringError(f flaw) error {
	if f == malformedText {
		return s.malformedError()
	}
	return invalidError("A string in " + s.describePlace(s.members.count) + " " + f.String())
}

// memberNameError is stringError for a name in the object whose members begin at base.
func (s *scanner) memberNameError(f flaw, base int) error {
	if f == malformedText {
		return s.malformedError()
	}
	return invalidError("A member name in " + s.describePlace(base) + " " + f.String())
}

func (s *scanner) malformedError() error {
	if s.members.count == 0 {
		return invalidError("The body is not valid JSON")
	}
	return invalidError("The body is not valid JSON in or after " + s.describePlace(s.members.count))
}

func (s *scanner) nestingError() error {
	return invalidError(fmt.Sprintf(
		"Nesting in %s is deeper than %d levels: make it flatter or send a part as a string",
		s.describePlace(s.members.count), s.maxDepth))
}

func duplicateNameError(name []byte) error {
	return invalidError("Member " + quoteMemberName(name) + " appears twice: send it once")
}

func invalidError(message string) error { return fault.New(fault.Invalid, message) }

// String describes the flaw in words that follow "A string".
func (f flaw) String() string {
	switch f {
	case notUTF8:
		return "is not valid UTF-8: send UTF-8"
	case loneSurrogate:
		return "has half of a surrogate pair: send whole characters"
	case malformedText:
		return "is not valid JSON"
	}
	return "is valid"
}

// describePlace names the latest of the first n open members.
func (s *scanner) describePlace(n int) string {
	if n == 0 {
		return "the body"
	}
	return "member " + quoteMemberName(s.members.memberAt(n-1).name)
}

// quoteMemberName returns name in quotes, in printable ASCII, truncated to maxName characters
// without splitting an escape.
func quoteMemberName(name []byte) string {
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
