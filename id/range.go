package id

// Range is the half-open range of indices [Begin, End).
type Range struct{ Begin, End Index }

// Len returns the number of indices, or 0 if Begin is not less than End.
func (r Range) Len() int {
	if r.Begin >= r.End {
		return 0
	}
	return int(r.End - r.Begin)
}

// Contains reports whether i is in the range.
func (r Range) Contains(i Index) bool { return r.Begin <= i && i < r.End }
