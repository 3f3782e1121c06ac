package frompage

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// number reads a literal by the grammar of RFC 8259 and the limits of "JSON".
func (r *reader) number() (float64, error) {
	start := r.at
	r.accept("-")
	if !r.accept("0") && !r.digits() {
		return 0, errors.New("no digit before the point")
	}
	if r.accept(".") && !r.digits() {
		return 0, errors.New("no digit behind the point")
	}
	if r.accept("e") || r.accept("E") {
		if !r.accept("+") {
			r.accept("-")
		}
		if !r.digits() {
			return 0, errors.New("no digit in the exponent")
		}
	}
	return keptByDouble(r.text[start:r.at])
}

// digits skips one or more digits, and reports whether there were any.
func (r *reader) digits() bool {
	start := r.at
	for isDigit(r.next()) {
		r.at++
	}
	return r.at > start
}

// keptByDouble returns the number of a literal if an IEEE double represents it, as "JSON" requires of every number.
func keptByDouble(literal string) (float64, error) {
	number, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return 0, errors.New("a number that becomes infinite")
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e")
	significant := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	switch {
	case number == 0 && significant != "":
		return 0, errors.New("a number that becomes zero")
	case strings.ContainsAny(literal, ".eE"):
		if len(significant) > 17 {
			return 0, errors.New("more than 17 significant digits")
		}
	case !sameValue(literal, numberForm(number)):
		return 0, errors.New("a whole number that no double keeps")
	}
	return number, nil
}

// sameValue compares two literals of bounded size, digit by digit.
func sameValue(a, b string) bool {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

// numberForm writes a number as RFC 8785 does, section 3.2.2.3: as ECMAScript's Number::toString.
func numberForm(number float64) string {
	if number == 0 {
		return "0" // also for minus zero
	}
	sign := ""
	if number < 0 {
		sign, number = "-", -number
	}
	// The shortest digits that give the same double: d.ddde±xx. The point comes after digit number "point".
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(number, 'e', -1, 64), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	power, _ := strconv.Atoi(exponent)
	point := power + 1
	switch {
	case len(digits) <= point && point <= 21:
		return sign + digits + strings.Repeat("0", point-len(digits))
	case 0 < point && point <= 21:
		return sign + digits[:point] + "." + digits[point:]
	case -6 < point && point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	}
	if len(digits) > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	if power > 0 {
		return sign + digits + "e+" + strconv.Itoa(power)
	}
	return sign + digits + "e" + strconv.Itoa(power)
}
