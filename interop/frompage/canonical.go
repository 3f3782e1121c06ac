package frompage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
)

// readCanonical reads an object whose text is exactly its RFC 8785 form, as "The record" and "The envelope" require.
func readCanonical(text string) (value, bool) {
	v, err := readObject(text)
	return v, err == nil && canonicalForm(v) == text
}

// canonicalForm returns the RFC 8785 form of a value.
func canonicalForm(v value) string {
	var out strings.Builder
	writeValue(&out, v)
	return out.String()
}

func writeValue(out *strings.Builder, v value) {
	switch v.kind {
	case isNull:
		out.WriteString("null")
	case isBoolean:
		fmt.Fprint(out, v.boolean)
	case isNumber:
		out.WriteString(numberForm(v.number))
	case isText:
		writeString(out, v.text)
	case isList:
		out.WriteByte('[')
		for i, element := range v.list {
			if i > 0 {
				out.WriteByte(',')
			}
			writeValue(out, element)
		}
		out.WriteByte(']')
	case isObject:
		out.WriteByte('{')
		for i, name := range slices.SortedFunc(maps.Keys(v.object), compareUTF16) {
			if i > 0 {
				out.WriteByte(',')
			}
			writeString(out, name)
			out.WriteByte(':')
			writeValue(out, v.object[name])
		}
		out.WriteByte('}')
	}
}

// compareUTF16 orders member names by their UTF-16 code units, RFC 8785 section 3.2.3.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// writeString writes a string with the escapes of RFC 8785 section 3.2.2.2, and no others.
func writeString(out *strings.Builder, text string) {
	out.WriteByte('"')
	for _, c := range []byte(text) {
		switch short := strings.IndexByte("\"\\\b\f\n\r\t", c); {
		case short >= 0:
			out.WriteByte('\\')
			out.WriteByte(`"\bfnrt`[short])
		case c < 0x20:
			fmt.Fprintf(out, `\u%04x`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
}
