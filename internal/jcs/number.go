package jcs

import (
	"math"
	"strconv"
)

// The number rule. A number is an IEEE double. Its canonical form is the shortest text that parses
// as that double (the text of ECMAScript, as RFC 8785 requires). This must never silently change a
// signed document. Therefore:
//
//   - an integer literal (no fraction, no exponent) must have the same value as its canonical form;
//   - any other literal may have up to 17 significant digits, not counting leading and trailing
//     zeros, and is rounded;
//   - no number may round to infinity, and only zero may round to zero.

const (
	maxDigits = 17 // the shortest text of a double never has more
	// exactDigits is the number of digits that every normal double preserves. Two decimals
	// of at most that many digits are never the same double, so each is its own shortest text.
	exactDigits = 15
)

// literal contains the parts of a number literal.
type literal struct {
	negative bool
	whole    []byte // digits before the point
	fraction []byte // digits after the point, nil if there is no point
	exponent []byte // digits of the exponent with their sign, nil if there is no exponent
}

// isIntegerLiteral reports whether the literal has neither fraction nor exponent.
func (l literal) isIntegerLiteral() bool { return l.fraction == nil && l.exponent == nil }

// isCanonicalForm reports whether the literal is evidently canonical, without computing its value.
// It may report false for a canonical literal.
func (l literal) isCanonicalForm() bool {
	switch {
	case l.exponent != nil || len(l.whole)+len(l.fraction) > exactDigits:
		return false
	case l.fraction == nil:
		return !l.negative || l.whole[0] != '0'
	case l.fraction[len(l.fraction)-1] == '0':
		return false
	}
	return l.whole[0] != '0' || countLeadingZeros(l.fraction) < 6 // smaller values are written with an exponent
}

// canonicalizeNumber reads a number literal and writes its canonical form.
func (s *scanner) canonicalizeNumber() error {
	l, n := parseNumberLiteral(s.src[s.pos:])
	if n == 0 {
		return s.malformedError()
	}
	if l.isCanonicalForm() {
		s.copyToOutput(n)
		return nil
	}
	var buf [32]byte
	text, why := buf[:0], ""
	if s.exact {
		text, why = appendExactNumber(text, l)
	} else {
		text, why = appendRoundedNumber(text, l)
	}
	if why != "" {
		return s.numberError(why)
	}
	if string(text) == string(s.src[s.pos:s.pos+n]) {
		s.copyToOutput(n)
		return nil
	}
	if s.same {
		s.startSeparateOutput(s.pos)
	}
	s.out = append(s.out, text...)
	s.pos += n
	return nil
}

// parseNumberLiteral parses the number literal at the start of b and returns its length, or 0 if
// there is none. It does not check the bytes after the literal.
func parseNumberLiteral(b []byte) (l literal, n int) {
	if n < len(b) && b[n] == '-' {
		l.negative = true
		n++
	}
	l.whole = leadingDigits(b[n:])
	n += len(l.whole)
	if len(l.whole) == 0 || l.whole[0] == '0' && len(l.whole) > 1 {
		return literal{}, 0
	}
	if n < len(b) && b[n] == '.' {
		l.fraction = leadingDigits(b[n+1:])
		if n += 1 + len(l.fraction); len(l.fraction) == 0 {
			return literal{}, 0
		}
	}
	if n < len(b) && b[n]|0x20 == 'e' {
		sign := 0
		if n+1 < len(b) && (b[n+1] == '+' || b[n+1] == '-') {
			sign = 1
		}
		d := leadingDigits(b[n+1+sign:])
		if len(d) == 0 {
			return literal{}, 0
		}
		l.exponent = b[n+1 : n+1+sign+len(d)]
		n += 1 + sign + len(d)
	}
	return l, n
}

func isASCIIDigit(c byte) bool { return c-'0' < 10 }

// leadingDigits returns the digits at the start of b.
func leadingDigits(b []byte) []byte {
	n := 0
	for n < len(b) && isASCIIDigit(b[n]) {
		n++
	}
	return b[:n]
}

func countLeadingZeros(b []byte) int {
	n := 0
	for n < len(b) && b[n] == '0' {
		n++
	}
	return n
}

// decimal is the value 0.digits * 10^exponent without its sign. digits has no leading or trailing
// zeros, and no digits at all if the value is zero. So equal values are equal decimals.
type decimal struct {
	digits   [maxDigits]byte
	count    int
	exponent int64
}

// exactDecimal returns the value of the literal. ok is false if the literal has more than maxDigits
// significant digits.
func (l literal) exactDecimal() (d decimal, ok bool) {
	d.exponent = int64(len(l.whole))
	zeros := 0 // zeros that may turn out to be trailing
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
	d.exponent += l.exponentValue()
	return d, true
}

// exponentValue returns the value of the exponent, clamped to a bound that is far outside the range
// of doubles for any number of digits.
func (l literal) exponentValue() int64 {
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

// appendRoundedNumber appends the canonical form of l to dst, or returns the reason why l is
// rejected.
func appendRoundedNumber(dst []byte, l literal) (canonical []byte, why string) {
	d, ok := l.exactDecimal()
	switch {
	case !ok && l.isIntegerLiteral():
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
	v := d.nearestDouble()
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
	if l.isIntegerLiteral() && d.count > exactDigits {
		written, _ := parseNumberLiteral(dst)
		if rounded, ok := written.exactDecimal(); !ok || rounded != d {
			return dst, notExact
		}
	}
	return dst, ""
}

// appendExactNumber appends the literal of l in exact form to dst, or returns the reason why l is rejected.
func appendExactNumber(dst []byte, l literal) (exact []byte, why string) {
	n, ok := l.exactNumber()
	switch {
	case !ok:
		return dst, tooLong
	case n.digits != "" && n.IsPlain():
		return appendDouble(dst, n.nearestDouble()), ""
	}
	return append(dst, n.String()...), ""
}

// nearestDouble returns the double nearest to d. The exponent of d must be near the range of
// doubles.
func (d decimal) nearestDouble() float64 {
	var buf [maxDigits + 8]byte
	text := append(buf[:0], d.digits[:d.count]...)
	text = append(text, 'e')
	text = strconv.AppendInt(text, d.exponent-int64(d.count), 10)
	v, _ := strconv.ParseFloat(string(text), 64) // the only error is ErrRange, whose value is Inf
	return v
}

// appendDouble appends the canonical form of v, which must be finite and not zero (RFC 8785,
// section 3.2.2.3).
func appendDouble(dst []byte, v float64) []byte {
	if abs := math.Abs(v); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' { // e-07: Go writes at least two digits
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
