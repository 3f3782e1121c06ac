package jcs

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Limits of a number that is not plain.
const (
	MaxNumberDigits   = 128  // significant digits
	MaxNumberExponent = 9999 // magnitude of the exponent in scientific notation
	// fixedExponents are the exponents of numbers that are written without one.
	minFixedExponent, maxFixedExponent = -6, 127
)

// Number is the exact value of a number literal. The zero value is 0. Equal values are equal Go
// values.
type Number struct {
	negative bool
	digits   string // without leading and trailing zeros, "" for zero
	exponent int    // of the first digit: 5 in 123456
}

// ParseNumber returns the value of a number literal. It returns false if text is not a JSON number or
// exceeds the limits.
func ParseNumber(text string) (Number, bool) {
	l, n := parseNumberLiteral([]byte(text))
	if n == 0 || n != len(text) {
		return Number{}, false
	}
	return l.exactNumber()
}

// exactNumber returns the value of the literal. It returns false if the value exceeds the limits.
func (l literal) exactNumber() (Number, bool) {
	var digits []byte
	first, zeros := int64(len(l.whole)), 0 // zeros that may turn out to be trailing
	for _, part := range [2][]byte{l.whole, l.fraction} {
		for _, c := range part {
			switch {
			case c != '0':
				if zeros > MaxNumberDigits || len(digits)+zeros >= MaxNumberDigits {
					return Number{}, false
				}
				for ; zeros > 0; zeros-- {
					digits = append(digits, '0')
				}
				digits = append(digits, c)
			case len(digits) == 0:
				first--
			default:
				zeros++
			}
		}
	}
	if len(digits) == 0 {
		return Number{}, true
	}
	exponent := first + l.exponentValue() - 1
	if exponent < -MaxNumberExponent || exponent > MaxNumberExponent {
		return Number{}, false
	}
	return Number{l.negative, string(digits), int(exponent)}, true
}

// IsPlain reports whether the shortest literal of the nearest double has the same value, so that
// canonical JSON (RFC 8785) preserves the number.
func (n Number) IsPlain() bool {
	if len(n.digits) <= exactDigits && n.exponent > -300 && n.exponent < 300 {
		return true
	}
	double := n.nearestDouble()
	if math.IsInf(double, 0) || double == 0 {
		return false
	}
	shortest, ok := ParseNumber(strconv.FormatFloat(double, 'e', -1, 64))
	return ok && shortest == n
}

func (n Number) nearestDouble() float64 {
	v, _ := strconv.ParseFloat(n.String(), 64) // the only error is ErrRange, whose value is Inf
	return v
}

// String returns the canonical literal: the integer's digits or a decimal fraction, and scientific
// notation for numbers below 1e-6 and from 1e128 on. It is the literal of RFC 8785 if that one has
// the same value and is below 1e21.
func (n Number) String() string {
	if n.digits == "" {
		return "0"
	}
	sign := ""
	if n.negative {
		sign = "-"
	}
	switch count := len(n.digits); {
	case n.exponent < minFixedExponent || n.exponent > maxFixedExponent:
		text := sign + n.digits[:1]
		if count > 1 {
			text += "." + n.digits[1:]
		}
		if n.exponent > 0 {
			return text + "e+" + strconv.Itoa(n.exponent)
		}
		return text + "e" + strconv.Itoa(n.exponent)
	case n.exponent < 0:
		return sign + "0." + strings.Repeat("0", -n.exponent-1) + n.digits
	case n.exponent >= count-1:
		return sign + n.digits + strings.Repeat("0", n.exponent+1-count)
	default:
		return sign + n.digits[:n.exponent+1] + "." + n.digits[n.exponent+1:]
	}
}

// Compare returns -1, 0 or 1 if n is less than, equal to or greater than m.
func (n Number) Compare(m Number) int {
	if n.sign() != m.sign() || n.digits == "" {
		return cmp.Compare(n.sign(), m.sign())
	}
	// Trailing zeros are cut, so the longer of two texts with one beginning is the larger number.
	magnitude := cmp.Or(cmp.Compare(n.exponent, m.exponent), strings.Compare(n.digits, m.digits))
	return magnitude * n.sign()
}

func (n Number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}
