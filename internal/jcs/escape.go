package jcs

import (
	"bytes"
	"unicode/utf8"
)

// scanEscape reads the escape at the start of b, or both escapes of a surrogate pair. It returns
// the character and the length in bytes.
func scanEscape(b []byte) (r rune, n int, f flaw) {
	if len(b) < 2 {
		return 0, 0, malformedText
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2, sound
	case 'b':
		return '\b', 2, sound
	case 'f':
		return '\f', 2, sound
	case 'n':
		return '\n', 2, sound
	case 'r':
		return '\r', 2, sound
	case 't':
		return '\t', 2, sound
	}
	unit, ok := parseHexUnit(b)
	switch {
	case !ok:
		return 0, 0, malformedText
	case unit < 0xd800 || unit > 0xdfff:
		return unit, 6, sound
	case unit > 0xdbff:
		return 0, 0, loneSurrogate
	}
	low, ok := parseHexUnit(b[6:])
	if !ok || low < 0xdc00 || low > 0xdfff {
		return 0, 0, loneSurrogate
	}
	return (unit-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12, sound
}

// parseHexUnit reads the UTF-16 code unit of an escape such as \u00e9 at the start of b.
func parseHexUnit(b []byte) (unit rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case isASCIIDigit(c):
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// classifyEscape reports whether escape is the canonical spelling of r.
func classifyEscape(r rune, escape []byte) spelling {
	if r >= utf8.RuneSelf || !needsEscape(byte(r)) {
		return loose
	}
	var buf [6]byte
	if !bytes.Equal(appendEscape(buf[:0], byte(r)), escape) {
		return loose
	}
	return minimal
}

// appendUnescaped appends the decoded text of raw, a valid string without its quotes.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		r, n, _ := scanEscape(raw[i:])
		dst = utf8.AppendRune(dst, r)
		raw = raw[i+n:]
	}
}

// AppendDecoded appends the decoded text of value, a canonical JSON string with its quotes. It
// reports whether value is a string.
func AppendDecoded(dst, value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return dst, false
	}
	return appendUnescaped(dst, value[1:len(value)-1]), true
}

// AppendString appends s as a canonical JSON string with its quotes. s MUST be valid UTF-8.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := range len(s) {
		if needsEscape(s[i]) {
			dst = append(dst, s[done:i]...)
			dst = appendEscape(dst, s[i])
			done = i + 1
		}
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// appendQuoted is AppendString for bytes. It is a separate function, because a generic one would
// move the buffers of all callers to the heap.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		if needsEscape(c) {
			dst = appendEscape(dst, c)
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

func needsEscape(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// appendEscape appends the canonical escape of c (RFC 8785, section 3.2.2.2).
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
