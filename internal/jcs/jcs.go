// Package jcs checks that a text is strict I-JSON and returns its canonical form (RFC 8785, JSON
// Canonicalization Scheme), in one pass.
//
// Invariants:
//
//   - An accepted text is UTF-8 without a byte order mark. It has no duplicate member names, no
//     lone surrogates, no data after the value, and bounded nesting.
//   - A number that its canonical form would change is rejected (number.go). Arguments of tools keep
//     such numbers: Exact accepts them (exact.go), and Tag and Untag convert between the exact form
//     and the recorded form, which is canonical JSON again (tag.go).
//   - The canonical form of a canonical text is the same slice, neither copied nor allocated.
//   - For every input, the work is O(n log n) in the members of an object and O(n) in everything
//     else except nesting. Numbers are never expanded.
//   - Errors are *fault.Error of kind Invalid. They name the nearest member and never repeat a
//     value.
//
// All functions are safe for concurrent use.
package jcs

import (
	"bytes"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/go-json-experiment/json"
)

// MaxDepth is the nesting that the service accepts. The outermost value is at level 1.
const MaxDepth = 64

// Canonicalize returns the canonical form of the single JSON value in src. White space around the
// value is allowed. Objects and arrays may be nested maxDepth levels deep. If src is canonical, the
// result is src itself, otherwise a new slice.
func Canonicalize(src []byte, maxDepth int) ([]byte, error) {
	s := scanner{src: src, same: true, maxDepth: maxDepth}
	if err := s.scanDocument(); err != nil {
		return nil, err
	}
	return s.canonicalOutput(), nil
}

// Member is one member of an object, as offsets into the object's canonical form: "name":value is
// [Start, End), value is [Value, End).
type Member struct {
	Start, Value, End int
}

// Name returns the name as it is written in canonical, without quotes. Escapes are not decoded, so
// a name equals a text without escapes if the bytes are equal.
func (m Member) Name(canonical []byte) []byte { return canonical[m.Start+1 : m.Value-2] }

// ParseObject is Canonicalize for a text that must be an object. It appends the members of the
// object to dst, in canonical order.
func ParseObject(dst []Member, src []byte, maxDepth int) (canonical []byte, members []Member, err error) {
	s := scanner{src: src, same: true, maxDepth: maxDepth}
	if err := s.scanDocument(); err != nil {
		return nil, dst, err
	}
	canonical = s.canonicalOutput()
	if canonical[0] != '{' {
		return nil, dst, fault.New(fault.Invalid, "The body must be a JSON object")
	}
	for _, m := range s.members.membersFrom(0) {
		dst = append(dst, Member{m.start, m.value, m.end})
	}
	return canonical, dst, nil
}

// Marshal returns the canonical form of v, encoded by go-json-experiment/json. It is for small
// documents off the hot path. It fails if Canonicalize would reject the encoding, for example
// because of an integer that no double represents exactly.
func Marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("marshal canonical JSON: %w", err)
	}
	canonical, err := Canonicalize(text, MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("marshal canonical JSON: %w", err)
	}
	return canonical, nil
}

// scanDocument reads all of src.
func (s *scanner) scanDocument() error {
	if bytes.HasPrefix(s.src, []byte("\xef\xbb\xbf")) {
		return fault.New(fault.Invalid, "The body begins with a byte order mark: leave it out")
	}
	if err := s.scanValue(1); err != nil {
		return err
	}
	if s.peekNextToken(); s.pos < len(s.src) {
		return fault.New(fault.Invalid, "The body has data after its JSON value: send one value")
	}
	return nil
}

func (s *scanner) canonicalOutput() []byte {
	if s.same {
		return s.src
	}
	return s.out
}
