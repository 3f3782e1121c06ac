package textcheck

import "fmt"

// Count returns a number with its noun: "1 ledger", "2 ledgers". A plural that is not the noun with an "s" is given as many,
// also with the words that depend on the number: Count(n, "log waits", "logs wait").
func Count[N ~int | ~int64 | ~uint32 | ~uint64 | ~float64](n N, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%v %s", n, many[0])
	}
	return fmt.Sprintf("%v %ss", n, one)
}

// GroupDigits returns the digits of a whole number with commas between groups of three.
func GroupDigits(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
