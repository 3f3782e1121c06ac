package id

// Range is the indices [Begin, End).
type Range struct{ Begin, End Index }

// Len returns the number of indices, 0 where Begin is not below End.
func (r Range) Len() int {
	if r.Begin >= r.End {
		return 0
	}
	return int(r.End - r.Begin)
}

// Contains reports whether i is one of the indices.
func (r Range) Contains(i Index) bool { return r.Begin <= i && i < r.End }
