package jcs

import (
	"math"
	"strconv"
)

// The number rule. A number is kept as an IEEE double, whose canonical form is
// the shortest text that reads back as that double (ECMAScript's, as RFC 8785
// demands). So that this never changes silently what a client signed:
//
//   - an integer literal (no fraction, no exponent) must have the same value as
//     its canonical form;
//   - any other literal may have 17 significant digits, leading and trailing zeros
//     not counted, and is rounded;
//   - nothing may round to infinity, and only zero to zero.

const (
	maxDigits = 17 // a double's shortest text never has more
	// exactDigits is how many digits every normal double range keeps: two decimals
	// of at most so many are never the same double, so each is its own shortest text.
	exactDigits = 15
)

// literal is the shape of a number literal.
type literal struct {
	negative bool
	whole    []byte // digits before the point
	fraction []byte // digits behind the point, nil when there is none
	exponent []byte // digits of the exponent with their sign, nil when there is none
}

// integer reports whether the literal has neither fraction nor exponent.
func (l literal) integer() bool { return l.fraction == nil && l.exponent == nil }

// canonical reports whether the literal is seen to be canonical without
// computing its value. It may say no to one that is.
func (l literal) canonical() bool {
	switch {
	case l.exponent != nil || len(l.whole)+len(l.fraction) > exactDigits:
		return false
	case l.fraction == nil:
		return !l.negative || l.whole[0] != '0'
	case l.fraction[len(l.fraction)-1] == '0':
		return false
	}
	return l.whole[0] != '0' || leadingZeros(l.fraction) < 6 // less is written with an exponent
}

// number reads a number literal.
func (s *scanner) number() error {
	l, n := scanNumber(s.src[s.pos:])
	if n == 0 {
		return s.malformed()
	}
	if l.canonical() {
		s.emit(n)
		return nil
	}
	var room [32]byte
	text, why := round(room[:0], l)
	if why != "" {
		return s.badNumber(why)
	}
	if string(text) == string(s.src[s.pos:s.pos+n]) {
		s.emit(n)
		return nil
	}
	if s.same {
		s.diverge(s.pos)
	}
	s.out = append(s.out, text...)
	s.pos += n
	return nil
}

// scanNumber reads the number literal that b begins with and returns its length,
// 0 when there is none. What follows it is not looked at.
func scanNumber(b []byte) (l literal, n int) {
	if n < len(b) && b[n] == '-' {
		l.negative = true
		n++
	}
	l.whole = digits(b[n:])
	n += len(l.whole)
	if len(l.whole) == 0 || l.whole[0] == '0' && len(l.whole) > 1 {
		return literal{}, 0
	}
	if n < len(b) && b[n] == '.' {
		l.fraction = digits(b[n+1:])
		if n += 1 + len(l.fraction); len(l.fraction) == 0 {
			return literal{}, 0
		}
	}
	if n < len(b) && b[n]|0x20 == 'e' {
		sign := 0
		if n+1 < len(b) && (b[n+1] == '+' || b[n+1] == '-') {
			sign = 1
		}
		d := digits(b[n+1+sign:])
		if len(d) == 0 {
			return literal{}, 0
		}
		l.exponent = b[n+1 : n+1+sign+len(d)]
		n += 1 + sign + len(d)
	}
	return l, n
}

func isDigit(c byte) bool { return c-'0' < 10 }

// digits returns the digits that b begins with.
func digits(b []byte) []byte {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return b[:n]
}

func leadingZeros(b []byte) int {
	n := 0
	for n < len(b) && b[n] == '0' {
		n++
	}
	return n
}

// decimal is a value: 0.digits times ten to the power of exponent, without its
// sign. Zeros at both ends of digits are dropped, zero has no digits, so that
// two decimals are of equal value when they are equal.
type decimal struct {
	digits   [maxDigits]byte
	count    int
	exponent int64
}

// decimal returns the literal's value; ok is false when it has more than
// maxDigits significant digits.
func (l literal) decimal() (d decimal, ok bool) {
	d.exponent = int64(len(l.whole))
	zeros := 0 // seen and not yet known to be inside
	for _, part := range [2][]byte{l.whole, l.fraction} {
		for _, c := range part {
			switch {
			case c != '0':
				if zeros >= maxDigits || d.count+zeros >= maxDigits {
					return decimal{}, false
				}
				for ; zeros > 0; zeros-- {
					d.digits[d.count] = '0'
					d.count++
				}
				d.digits[d.count] = c
				d.count++
			case d.count == 0:
				d.exponent--
			default:
				zeros++
			}
		}
	}
	if d.count == 0 {
		return decimal{}, true
	}
	d.exponent += l.power()
	return d, true
}

// power returns the exponent's value, cut to a bound that no count of digits can
// bring back into the range of doubles.
func (l literal) power() int64 {
	const bound = 1 << 50
	var v int64
	negative := false
	for _, c := range l.exponent {
		switch c {
		case '+':
		case '-':
			negative = true
		default:
			v = min(v*10+int64(c-'0'), bound)
		}
	}
	if negative {
		return -v
	}
	return v
}

// round appends the canonical form of l to dst, or says why l is refused.
func round(dst []byte, l literal) (canonical []byte, why string) {
	d, ok := l.decimal()
	switch {
	case !ok && l.integer():
		return dst, notExact
	case !ok:
		return dst, tooPrecise
	case d.count == 0:
		return append(dst, '0'), ""
	case d.exponent > 310:
		return dst, tooLarge
	case d.exponent < -330:
		return dst, tooSmall
	}
	v := d.double()
	switch {
	case math.IsInf(v, 0):
		return dst, tooLarge
	case v == 0:
		return dst, tooSmall
	}
	if l.negative {
		v = -v
	}
	dst = appendDouble(dst, v)
	if l.integer() && d.count > exactDigits {
		written, _ := scanNumber(dst)
		if kept, ok := written.decimal(); !ok || kept != d {
			return dst, notExact
		}
	}
	return dst, ""
}

// double returns the double nearest to d, whose exponent is near the range of doubles.
func (d decimal) double() float64 {
	var room [maxDigits + 8]byte
	text := append(room[:0], d.digits[:d.count]...)
	text = append(text, 'e')
	text = strconv.AppendInt(text, d.exponent-int64(d.count), 10)
	v, _ := strconv.ParseFloat(string(text), 64) // fails by range alone, and gives Inf then
	return v
}

// appendDouble appends the canonical form of v, which is finite and not zero
// (RFC 8785, section 3.2.2.3).
func appendDouble(dst []byte, v float64) []byte {
	if abs := math.Abs(v); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' { // e-07: Go writes two digits at least
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
