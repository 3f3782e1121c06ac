package jcs

import "bytes"

// scanner reads src once, from left to right. While the input is canonical it writes nothing: same
// is true, and the output is src[:pos]. At the first byte that is not canonical it copies the
// output so far to out and writes there from then on. Offsets into the output are valid in both
// states.
type scanner struct {
	src      []byte
	pos      int // next byte of src
	same     bool
	out      []byte
	maxDepth int
	exact    bool        // numbers keep their exact values (tag.go)
	members  memberStack // the members of the outermost object remain after it is closed
	names    []byte      // decoded names that were spelled with escapes
	scratch  []byte      // the members of an object while they are sorted
}

// startSeparateOutput starts a separate output that begins with src[:pos].
func (s *scanner) startSeparateOutput(pos int) {
	s.same = false
	s.out = make([]byte, pos, len(s.src)+32)
	copy(s.out, s.src)
}

// outputLength returns the length of the output.
func (s *scanner) outputLength() int {
	if s.same {
		return s.pos
	}
	return len(s.out)
}

// peekNextToken returns the next byte that is not white space, or 0 at the end of src. No token
// begins with 0.
func (s *scanner) peekNextToken() byte {
	if s.pos < len(s.src) && s.src[s.pos] > ' ' {
		return s.src[s.pos]
	}
	return s.skipWhiteSpace()
}

func (s *scanner) skipWhiteSpace() byte {
	start := s.pos
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			if s.same {
				s.startSeparateOutput(start)
			}
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// copyToOutput copies the next n bytes of src to the output.
func (s *scanner) copyToOutput(n int) {
	if !s.same {
		s.out = append(s.out, s.src[s.pos:s.pos+n]...)
	}
	s.pos += n
}

// scanValue reads one value. If the value is an object or array, its level is depth.
func (s *scanner) scanValue(depth int) error {
	switch c := s.peekNextToken(); c {
	case '"':
		_, _, f := s.canonicalizeString()
		if f != sound {
			return s.stringError(f)
		}
		return nil
	case '{':
		return s.scanObject(depth)
	case '[':
		return s.scanArray(depth)
	case 't':
		return s.scanKeyword("true")
	case 'f':
		return s.scanKeyword("false")
	case 'n':
		return s.scanKeyword("null")
	default:
		if c == '-' || isASCIIDigit(c) {
			return s.canonicalizeNumber()
		}
		return s.malformedError()
	}
}

func (s *scanner) scanKeyword(w string) error {
	if !bytes.HasPrefix(s.src[s.pos:], []byte(w)) {
		return s.malformedError()
	}
	s.copyToOutput(len(w))
	return nil
}

func (s *scanner) scanArray(depth int) error {
	if depth > s.maxDepth {
		return s.nestingError()
	}
	s.copyToOutput(1)
	if s.peekNextToken() == ']' {
		s.copyToOutput(1)
		return nil
	}
	for {
		if err := s.scanValue(depth + 1); err != nil {
			return err
		}
		switch s.peekNextToken() {
		case ',':
			s.copyToOutput(1)
		case ']':
			s.copyToOutput(1)
			return nil
		default:
			return s.malformedError()
		}
	}
}

func (s *scanner) scanObject(depth int) error {
	if depth > s.maxDepth {
		return s.nestingError()
	}
	base := s.members.count
	s.copyToOutput(1)
	if s.peekNextToken() != '}' {
		ordered, err := s.scanObjectMembers(base, depth)
		if err == nil && !ordered {
			err = s.sortMembers(base)
		}
		if err != nil {
			return err
		}
	}
	s.copyToOutput(1)
	if depth > 1 {
		s.members.dropMembersFrom(base)
	}
	return nil
}

// scanObjectMembers reads the members up to the closing brace. It reports whether they are in
// canonical order, which implies that no two are equal.
func (s *scanner) scanObjectMembers(base, depth int) (ordered bool, err error) {
	ordered = true
	for {
		m, err := s.scanMemberName(base)
		if err != nil {
			return false, err
		}
		at := s.members.pushMember(m)
		if at > base && ordered {
			ordered = compareNames(s.members.memberAt(at-1).name, m.name) < 0
		}
		if err := s.scanValue(depth + 1); err != nil {
			return false, err
		}
		s.members.memberAt(at).end = s.outputLength()
		switch s.peekNextToken() {
		case ',':
			s.copyToOutput(1)
		case '}':
			return ordered, nil
		default:
			return false, s.malformedError()
		}
	}
}

// scanMemberName reads a name and its colon. The end of the member is not set yet.
func (s *scanner) scanMemberName(base int) (m member, err error) {
	if s.peekNextToken() != '"' {
		return m, s.malformedError()
	}
	m.start = s.outputLength()
	raw, sp, f := s.canonicalizeString()
	if f != sound {
		return m, s.memberNameError(f, base)
	}
	m.name = raw
	if sp != plain {
		from := len(s.names)
		s.names = appendUnescaped(s.names, raw)
		m.name = s.names[from:]
	}
	if s.peekNextToken() != ':' {
		return m, s.malformedError()
	}
	s.copyToOutput(1)
	m.value = s.outputLength()
	return m, nil
}
