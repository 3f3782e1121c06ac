package jcs

import "slices"

// sortMembers sorts the members of the object that began at base and rejects duplicates. The
// closing brace is the next byte.
func (s *scanner) sortMembers(base int) error {
	members := s.members.membersFrom(base)
	first := members[0].start
	slices.SortFunc(members, func(a, b member) int { return compareNames(a.name, b.name) })
	for i := 1; i < len(members); i++ {
		if compareNames(members[i-1].name, members[i].name) == 0 {
			return duplicateNameError(members[i].name)
		}
	}
	if s.same {
		s.startSeparateOutput(s.pos)
	}
	s.scratch = append(s.scratch[:0], s.out[first:]...)
	s.out = s.out[:first]
	for i := range members {
		if i > 0 {
			s.out = append(s.out, ',')
		}
		m := &members[i]
		moved := len(s.out) - m.start
		s.out = append(s.out, s.scratch[m.start-first:m.end-first]...)
		m.start += moved
		m.value += moved
		m.end += moved
	}
	return nil
}

// compareNames orders two UTF-8 names as RFC 8785 requires: by their UTF-16 code units. This is the
// order of the bytes with one exception: characters beyond U+FFFF (first byte 0xF0 and above) are
// surrogates in UTF-16, so they come before U+E000 to U+FFFF (first byte 0xEE or 0xEF).
func compareNames(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			x, y = y, x
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}
