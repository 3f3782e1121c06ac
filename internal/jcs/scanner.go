package jcs

import "bytes"

// scanner reads src once, from left to right. As long as what it has read is
// canonical it only looks (same is true, the output is src[:pos]); at the first
// byte that isn't, the output so far is copied to out and written from there on.
// Offsets into the output are valid in both states and across that change.
type scanner struct {
	src      []byte
	pos      int // next byte of src
	same     bool
	out      []byte
	maxDepth int
	members  stack  // the outermost object's stay when it is closed
	names    []byte // names that were spelled with escapes, decoded
	scratch  []byte // an object's members while they are put into order
}

// diverge starts a separate output that begins with src[:pos].
func (s *scanner) diverge(pos int) {
	s.same = false
	s.out = make([]byte, pos, len(s.src)+32)
	copy(s.out, s.src)
}

// mark returns the length of the output.
func (s *scanner) mark() int {
	if s.same {
		return s.pos
	}
	return len(s.out)
}

// peek returns the next byte that is not white space, 0 at the end: no token
// begins with a 0.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) && s.src[s.pos] > ' ' {
		return s.src[s.pos]
	}
	return s.skipSpace()
}

func (s *scanner) skipSpace() byte {
	start := s.pos
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			if s.same {
				s.diverge(start)
			}
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// emit takes the next n bytes of src over as they are.
func (s *scanner) emit(n int) {
	if !s.same {
		s.out = append(s.out, s.src[s.pos:s.pos+n]...)
	}
	s.pos += n
}

// value reads one value; an object or array of it is at level depth.
func (s *scanner) value(depth int) error {
	switch c := s.peek(); c {
	case '"':
		_, _, f := s.text()
		if f != sound {
			return s.badText(f)
		}
		return nil
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		if c == '-' || isDigit(c) {
			return s.number()
		}
		return s.malformed()
	}
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.src[s.pos:], []byte(w)) {
		return s.malformed()
	}
	s.emit(len(w))
	return nil
}

func (s *scanner) array(depth int) error {
	if depth > s.maxDepth {
		return s.tooDeep()
	}
	s.emit(1)
	if s.peek() == ']' {
		s.emit(1)
		return nil
	}
	for {
		if err := s.value(depth + 1); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.emit(1)
		case ']':
			s.emit(1)
			return nil
		default:
			return s.malformed()
		}
	}
}

func (s *scanner) object(depth int) error {
	if depth > s.maxDepth {
		return s.tooDeep()
	}
	base := s.members.count
	s.emit(1)
	if s.peek() != '}' {
		ordered, err := s.objectMembers(base, depth)
		if err == nil && !ordered {
			err = s.order(base)
		}
		if err != nil {
			return err
		}
	}
	s.emit(1)
	if depth > 1 {
		s.members.truncate(base)
	}
	return nil
}

// objectMembers reads members up to the closing brace and reports whether they
// are in canonical order, which also says that no two are the same.
func (s *scanner) objectMembers(base, depth int) (ordered bool, err error) {
	ordered = true
	for {
		m, err := s.memberName(base)
		if err != nil {
			return false, err
		}
		at := s.members.push(m)
		if at > base && ordered {
			ordered = compareNames(s.members.at(at-1).name, m.name) < 0
		}
		if err := s.value(depth + 1); err != nil {
			return false, err
		}
		s.members.at(at).end = s.mark()
		switch s.peek() {
		case ',':
			s.emit(1)
		case '}':
			return ordered, nil
		default:
			return false, s.malformed()
		}
	}
}

// memberName reads a name and its colon. The member's end is not known yet.
func (s *scanner) memberName(base int) (m member, err error) {
	if s.peek() != '"' {
		return m, s.malformed()
	}
	m.start = s.mark()
	raw, sp, f := s.text()
	if f != sound {
		return m, s.badName(f, base)
	}
	m.name = raw
	if sp != plain {
		from := len(s.names)
		s.names = appendDecoded(s.names, raw)
		m.name = s.names[from:]
	}
	if s.peek() != ':' {
		return m, s.malformed()
	}
	s.emit(1)
	m.value = s.mark()
	return m, nil
}
