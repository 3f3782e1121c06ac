package decimal

import (
	"math/bits"
	"strconv"
)

// Parse parses `-?digits[.digits]`, without an exponent. A point needs at least one digit on each
// side; leading and trailing zeros are allowed. It returns ErrSyntax or ErrRange.
func Parse(s string) (Decimal, error) {
	rest, negative := s, false
	if rest != "" && rest[0] == '-' {
		rest, negative = rest[1:], true
	}
	n := countDigits(rest)
	whole, rest := rest[:n], rest[n:]
	fraction := ""
	if rest != "" && rest[0] == '.' {
		n = countDigits(rest[1:])
		fraction, rest = rest[1:1+n], rest[1+n:]
		if n == 0 {
			return Decimal{}, ErrSyntax
		}
	}
	if whole == "" || rest != "" {
		return Decimal{}, ErrSyntax
	}
	d, err := assembleDigits(trimLeadingZeros(whole), trimTrailingZeros(fraction))
	if err != nil || !negative {
		return d, err
	}
	return d.Neg(), nil
}

// assembleDigits returns the decimal with the given digits before and after the point.
func assembleDigits(whole, fraction string) (Decimal, error) {
	if len(whole) > WholeDigits || len(fraction) > FractionDigits {
		return Decimal{}, ErrRange
	}
	var d Decimal
	for i := range len(whole) {
		d = d.appendDigit(whole[i] - '0')
	}
	for i := range FractionDigits {
		digit := byte(0)
		if i < len(fraction) {
			digit = fraction[i] - '0'
		}
		d = d.appendDigit(digit)
	}
	return d, nil
}

// appendDigit returns 10d + digit. d must not be negative.
func (d Decimal) appendDigit(digit byte) Decimal {
	carry, lo := bits.Mul64(d.lo, 10)
	lo, more := bits.Add64(lo, uint64(digit), 0)
	return Decimal{d.hi*10 + int64(carry) + int64(more), lo}
}

// String returns the shortest text: without an exponent and without redundant zeros.
func (d Decimal) String() string { return string(d.Append(nil)) }

// Append appends the text of String to b.
func (d Decimal) Append(b []byte) []byte {
	if d.hi < 0 {
		b, d = append(b, '-'), d.Neg()
	}
	whole, fraction := bits.Div64(uint64(d.hi%1e18), d.lo, 1e18)
	if high := uint64(d.hi) / 1e18; high != 0 { // the whole part exceeds 64 bits
		b = appendLong(b, high, whole)
	} else {
		b = strconv.AppendUint(b, whole, 10)
	}
	if fraction == 0 {
		return b
	}
	b = append(b, '.')
	for unit := uint64(1e17); fraction > 0; unit /= 10 {
		b = append(b, '0'+byte(fraction/unit))
		fraction %= unit
	}
	return b
}

// appendLong appends hi·2^64 + lo, which must be below 10^20.
func appendLong(b []byte, hi, lo uint64) []byte {
	high, low := bits.Div64(hi, lo, 1e10)
	b = strconv.AppendUint(b, high, 10)
	for unit := uint64(1e9); unit > 0; unit /= 10 {
		b = append(b, '0'+byte(low/unit%10))
	}
	return b
}

// MarshalText returns the text of String.
func (d Decimal) MarshalText() ([]byte, error) { return d.Append(nil), nil }

// UnmarshalText parses the text with Parse.
func (d *Decimal) UnmarshalText(b []byte) (err error) {
	*d, err = Parse(string(b))
	return err
}

func countDigits(s string) int {
	n := 0
	for n < len(s) && s[n]-'0' < 10 {
		n++
	}
	return n
}

func trimLeadingZeros(s string) string {
	for s != "" && s[0] == '0' {
		s = s[1:]
	}
	return s
}

func trimTrailingZeros(s string) string {
	for s != "" && s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	return s
}
