// Package decimal implements exact arithmetic on amounts: signed decimals with up to 20 digits
// before the point and 18 after it, stored as one 128-bit integer.
//
// Invariants:
//
//   - No operation rounds. A result that does not fit is an error.
//   - Equal values are equal Go values and have one text.
//   - A JSON number means the decimal of its shortest literal, which is the literal that canonical
//     JSON (RFC 8785) writes: 0.1 is one tenth.
//
// Errors wrap ErrSyntax or ErrRange.
//
// The package is stable in the sense of README, section Stability.
package decimal

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
)

// Maximum numbers of digits of a value.
const (
	WholeDigits    = 20 // before the point
	FractionDigits = 18 // after the point
)

var (
	// ErrSyntax is returned for text that is not a decimal.
	ErrSyntax = errors.New("decimal: not a number")
	// ErrRange is returned for a value with too many digits.
	ErrRange = errors.New("decimal: out of range")
)

// Decimal is a value times 10^18, in two's complement. The zero value is 0. Decimals can be
// compared with == and used as map keys.
type Decimal struct {
	hi int64
	lo uint64
}

// bound is 10^38, the first magnitude that does not fit.
var bound = Decimal{0x4b3b4ca85a86c47a, 0x098a224000000000}

// FromInt returns n. Every 64-bit integer fits.
func FromInt(n int64) Decimal {
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	hi, lo := bits.Mul64(magnitude, 1e18)
	d := Decimal{int64(hi), lo}
	if n < 0 {
		return d.Neg()
	}
	return d
}

// FromFloat returns the decimal of the shortest literal of f. It returns ErrRange for infinities,
// NaN and values that do not fit.
func FromFloat(f float64) (Decimal, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) || math.Abs(f) >= 1e20 {
		return Decimal{}, ErrRange
	}
	var buf [400]byte
	return Parse(string(strconv.AppendFloat(buf[:0], f, 'f', -1, 64)))
}

// Max returns the largest decimal.
func Max() Decimal {
	lo, borrow := bits.Sub64(bound.lo, 1, 0)
	return Decimal{bound.hi - int64(borrow), lo}
}

// Neg returns -d.
func (d Decimal) Neg() Decimal {
	lo, borrow := bits.Sub64(0, d.lo, 0)
	hi, _ := bits.Sub64(0, uint64(d.hi), borrow)
	return Decimal{int64(hi), lo}
}

// Add returns d + e. It returns ErrRange if the sum does not fit.
func (d Decimal) Add(e Decimal) (Decimal, error) {
	lo, carry := bits.Add64(d.lo, e.lo, 0)
	hi, _ := bits.Add64(uint64(d.hi), uint64(e.hi), carry) // both are below 2^126, so this cannot overflow
	return Decimal{int64(hi), lo}.checkRange()
}

// Sub returns d - e. It returns ErrRange if the difference does not fit.
func (d Decimal) Sub(e Decimal) (Decimal, error) { return d.Add(e.Neg()) }

func (d Decimal) checkRange() (Decimal, error) {
	if d.Cmp(bound) >= 0 || d.Cmp(bound.Neg()) <= 0 {
		return Decimal{}, ErrRange
	}
	return d, nil
}

// Cmp returns -1, 0 or 1 if d is less than, equal to or greater than e.
func (d Decimal) Cmp(e Decimal) int {
	switch {
	case d == e:
		return 0
	case d.hi < e.hi, d.hi == e.hi && d.lo < e.lo:
		return -1
	}
	return 1
}

// Sign returns -1, 0 or 1 if d is negative, zero or positive.
func (d Decimal) Sign() int { return d.Cmp(Decimal{}) }
