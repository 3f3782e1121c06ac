package frompage

import "strings"

// This file has the grammars of "Words", of ASCII texts. Each matches the whole text.

func isDigit(c byte) bool         { return '0' <= c && c <= '9' }
func isLower(c byte) bool         { return 'a' <= c && c <= 'z' }
func isLetter(c byte) bool        { return isLower(c) || 'A' <= c && c <= 'Z' }
func isLetterOrDigit(c byte) bool { return isLetter(c) || isDigit(c) }
func isHexDigit(c byte) bool      { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
func isLowerHexDigit(c byte) bool { return isHexDigit(c) && !('A' <= c && c <= 'F') }

// only reports whether every byte of a text belongs to a class.
func only(text string, class func(byte) bool) bool {
	for i := range len(text) {
		if !class(text[i]) {
			return false
		}
	}
	return true
}

// isHash reports whether a text is 64 lower-case hex digits.
func isHash(text string) bool { return len(text) == 64 && only(text, isLowerHexDigit) }

// spelled reports whether a text has 1 to most characters, all of them ASCII letters, digits or in others.
func spelled(most int, others string) func(value) bool {
	return func(v value) bool {
		return v.kind == isText && 1 <= len(v.text) && len(v.text) <= most && only(v.text, func(c byte) bool {
			return isLetterOrDigit(c) || strings.IndexByte(others, c) >= 0
		})
	}
}

func id(v value) bool      { return spelled(128, "._:-")(v) && v.text != "." && v.text != ".." }
func agentID(v value) bool { return spelled(128, "._-")(v) }
func keyID(v value) bool   { return spelled(256, "._:#-")(v) }

// token reports whether a text is a lower-case letter and up to 63 lower-case letters, digits and underscores.
func token(v value) bool {
	return spelled(64, "_")(v) && isLower(v.text[0]) && v.text == strings.ToLower(v.text)
}

// tool reports whether a text consists of non-empty parts separated by points.
func tool(v value) bool {
	return spelled(256, "_:/-.")(v) && !strings.Contains("."+v.text+".", "..")
}

// uuid reports whether a text is 8, 4, 4, 4 and 12 hex digits in any case.
func uuid(v value) bool {
	groups := strings.Split(v.text, "-")
	if v.kind != isText || len(groups) != 5 {
		return false
	}
	for i, length := range []int{8, 4, 4, 4, 12} {
		if len(groups[i]) != length || !only(groups[i], isHexDigit) {
			return false
		}
	}
	return true
}

// lowerUUID reports whether a text is a UUID without upper-case letters.
func lowerUUID(v value) bool { return uuid(v) && v.text == strings.ToLower(v.text) }

// timeOf reports whether a text is YYYY-MM-DDThh:mm:ss, a rest that fraction accepts, and Z.
func timeOf(v value, fraction func(string) bool) bool {
	const form = "dddd-dd-ddTdd:dd:dd"
	if v.kind != isText || len(v.text) <= len(form) || !strings.HasSuffix(v.text, "Z") {
		return false
	}
	for i := range len(form) {
		if form[i] == 'd' && !isDigit(v.text[i]) || form[i] != 'd' && v.text[i] != form[i] {
			return false
		}
	}
	number := func(from, to int) (n int) {
		for _, c := range v.text[from:to] {
			n = 10*n + int(c-'0')
		}
		return n
	}
	month, day := number(5, 7), number(8, 10)
	return 1 <= month && month <= 12 && 1 <= day && day <= daysOf(number(0, 4), month) &&
		number(11, 13) <= 23 && number(14, 16) <= 59 && number(17, 19) <= 59 &&
		fraction(v.text[len(form):len(v.text)-1])
}

// daysOf returns the number of days of a month in the Gregorian calendar, even before 1582.
func daysOf(year, month int) int {
	switch {
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	case month != 2:
		return 31
	case year%4 == 0 && year%100 != 0 || year%400 == 0:
		return 29
	}
	return 28
}

// pointAndDigits reports whether a text is a point and least to most digits.
func pointAndDigits(text string, least, most int) bool {
	digits, point := strings.CutPrefix(text, ".")
	return point && least <= len(digits) && len(digits) <= most && only(digits, isDigit)
}

// timeWithMillis implements "time": exactly three digits after the point.
func timeWithMillis(v value) bool {
	return timeOf(v, func(rest string) bool { return pointAndDigits(rest, 3, 3) })
}

// someTime reports whether a text is a time other than the first moment of 1970.
func someTime(v value) bool { return timeWithMillis(v) && v.text != "1970-01-01T00:00:00.000Z" }

// moment reports whether a text is a time with 1 to 9 digits after the point, or without both.
func moment(v value) bool {
	return timeOf(v, func(rest string) bool { return rest == "" || pointAndDigits(rest, 1, 9) })
}

// traceparent reports whether a text is 00, 32 digits, 16 digits and 2 digits with a hyphen between each, where the digits are of
// lower-case hexadecimal, and neither the 32 nor the 16 are all zero.
func traceparent(v value) bool {
	parts := strings.Split(v.text, "-")
	if v.kind != isText || len(parts) != 4 || parts[0] != "00" {
		return false
	}
	for i, size := range [...]int{2, 32, 16, 2} {
		if len(parts[i]) != size || strings.Trim(parts[i], "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}
