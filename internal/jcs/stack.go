package jcs

// member is one member of an open object. The offsets are offsets into the output.
type member struct {
	name              []byte // decoded; aliases the source or the scanner's names
	start, value, end int    // as in Member
}

// memberStack contains the members of all open objects, the innermost object last. The first
// members are in the struct itself and need no allocation. If there are more, all members move to
// spilled and stay there.
type memberStack struct {
	inline  [32]member
	count   int
	spilled []member // nil while inline is large enough
}

// pushMember adds m and returns its position.
func (s *memberStack) pushMember(m member) (at int) {
	at = s.count
	s.count++
	if s.spilled == nil {
		if at < len(s.inline) {
			s.inline[at] = m
			return at
		}
		s.spilled = append(make([]member, 0, 4*len(s.inline)), s.inline[:]...)
	}
	s.spilled = append(s.spilled[:at], m)
	return at
}

// membersFrom returns the members from base on. The next push may move them.
func (s *memberStack) membersFrom(base int) []member {
	if s.spilled == nil {
		return s.inline[base:s.count]
	}
	return s.spilled[base:s.count]
}

// memberAt returns the member at position i. The next push may move it.
func (s *memberStack) memberAt(i int) *member {
	if s.spilled == nil {
		return &s.inline[i]
	}
	return &s.spilled[i]
}

// dropMembersFrom drops the members from base on.
func (s *memberStack) dropMembersFrom(base int) { s.count = base }
