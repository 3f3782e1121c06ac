package page

import "github.com/go-json-experiment/json/jsontext"

// maxIndented bounds an indented text in bytes. Indenting nested lists of short values can grow them a hundredfold.
const maxIndented = 4 << 20

// Indent formats JSON for reading, with one member per line. It returns the text unchanged if it is not JSON, or if the
// result would be longer than 4 MiB.
func Indent(text []byte) []byte {
	if sizeIndented(text) > maxIndented {
		return text
	}
	v := jsontext.Value(text).Clone()
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return text
	}
	return v
}

// sizeIndented returns an upper bound of the indented size.
func sizeIndented(text []byte) int {
	size, depth, quoted := len(text), 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == ':':
			size++
		}
	}
	return size
}
