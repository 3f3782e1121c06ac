package frompage

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string and its escapes. It rejects half of a surrogate pair.
func (r *reader) string() (string, error) {
	var out strings.Builder
	for r.at++; r.at < len(r.text); {
		c := r.text[r.at]
		r.at++
		switch {
		case c == '"':
			return out.String(), nil
		case c < 0x20:
			return "", errors.New("control character in a string")
		case c != '\\':
			out.WriteByte(c)
		default:
			escaped, err := r.escape()
			if err != nil {
				return "", err
			}
			out.WriteRune(escaped)
		}
	}
	return "", errors.New("string without end")
}

// escape reads what follows a backslash.
func (r *reader) escape() (rune, error) {
	c := r.next()
	if r.at++; c != 'u' {
		if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), nil
		}
		return 0, errors.New("unknown escape")
	}
	first, err := r.fourHexDigits()
	if err != nil || !utf16.IsSurrogate(first) {
		return first, err
	}
	if !r.accept(`\u`) {
		return 0, errors.New("lone surrogate")
	}
	second, err := r.fourHexDigits()
	if err != nil {
		return 0, err
	}
	both := utf16.DecodeRune(first, second)
	if both == utf8.RuneError { // no pair of surrogates represents U+FFFD
		return 0, errors.New("lone surrogate")
	}
	return both, nil
}

// fourHexDigits reads the number of a \u escape, in upper or lower case.
func (r *reader) fourHexDigits() (rune, error) {
	if len(r.text)-r.at < 4 || !only(r.text[r.at:r.at+4], isHexDigit) {
		return 0, errors.New("not four hex digits")
	}
	n, err := strconv.ParseUint(r.text[r.at:r.at+4], 16, 16)
	r.at += 4
	return rune(n), err
}
