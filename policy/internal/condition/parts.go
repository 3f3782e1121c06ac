package condition

import "strings"

// bytesPerPart is the number of bytes of a condition that count as one more part.
const bytesPerPart = 32

// CountParts counts the parts of a condition's source, as a measure of the cost of compiling it:
// names, numbers, texts and signs (a bracket, a dot, a comma, an operator), and one more for each
// bytesPerPart bytes. For example, `payload.a > 5.0` has five. For a source that is not CEL the
// count is meaningless.
func CountParts(source string) int {
	parts := len(source) / bytesPerPart
	for i := 0; i < len(source); {
		switch c := source[i]; {
		case c <= ' ':
			i++
			continue
		case strings.HasPrefix(source[i:], "//"):
			i = skipPastText(source, i, "\n")
			continue
		case c == '"' || c == '\'':
			i = skipQuoted(source, i, false)
		case c == '`':
			i = skipPastText(source, i+1, "`")
		case isWordByte(c):
			i = skipName(source, i)
		case i+1 < len(source) && isOperator(source[i:i+2]):
			i += 2
		default:
			i++
		}
		parts++
	}
	return parts
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isOperator(two string) bool {
	switch two {
	case "&&", "||", "==", "!=", "<=", ">=":
		return true
	}
	return false
}

// skipName returns the index after the name or number at i, or after the text that it prefixes, as
// in r"\d".
func skipName(s string, i int) int {
	begin, number := i, s[i] <= '9'
	for i < len(s) && (isWordByte(s[i]) || number && s[i] == '.') {
		i++
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		switch prefix := strings.ToLower(s[begin:i]); prefix {
		case "r", "br", "rb":
			return skipQuoted(s, i, true)
		case "b":
			return skipQuoted(s, i, false)
		}
	}
	return i
}

// skipQuoted returns the index after the text that begins with the quote at i. In a raw text a
// backslash is an ordinary character.
func skipQuoted(s string, i int, raw bool) int {
	quote := s[i : i+1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(s[i:], three) {
		quote = three
	}
	for i += len(quote); i < len(s); i++ {
		switch {
		case s[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		case s[i] == '\n' && len(quote) == 1:
			return i
		}
	}
	return len(s)
}

// skipPastText returns the index after the next end at or after i.
func skipPastText(s string, i int, end string) int {
	n := strings.Index(s[i:], end)
	if n < 0 {
		return len(s)
	}
	return i + n + len(end)
}
