package jcs

// member is one member of an open object. Its offsets are into the output.
type member struct {
	name              []byte // decoded; aliases the source or the scanner's names
	start, value, end int    // as in Member
}

// stack holds the members of all open objects, the innermost object's last. The
// first ones need no allocation: they lie in the stack itself, and all move to
// spilled, for good, when there are more.
type stack struct {
	room    [32]member
	count   int
	spilled []member // nil while room is enough
}

// push adds m and returns its place.
func (s *stack) push(m member) (at int) {
	at = s.count
	s.count++
	if s.spilled == nil {
		if at < len(s.room) {
			s.room[at] = m
			return at
		}
		s.spilled = append(make([]member, 0, 4*len(s.room)), s.room[:]...)
	}
	s.spilled = append(s.spilled[:at], m)
	return at
}

// from returns the members at base and after it. They may move with the next push.
func (s *stack) from(base int) []member {
	if s.spilled == nil {
		return s.room[base:s.count]
	}
	return s.spilled[base:s.count]
}

// at returns the member at place i. It may move with the next push.
func (s *stack) at(i int) *member {
	if s.spilled == nil {
		return &s.room[i]
	}
	return &s.spilled[i]
}

// truncate drops the members at base and after it.
func (s *stack) truncate(base int) { s.count = base }
