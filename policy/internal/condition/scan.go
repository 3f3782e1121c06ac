package condition

import (
	"bytes"

	"github.com/agentledger/agentledger/internal/jcs"
)

// The functions of this file read canonical JSON, which has no white space and is known to be
// well-formed. For any other text their results are meaningless, but they terminate and stay within
// the text.

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':':
			i++
		default:
			i = skipNumberOrWord(b, i)
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(b)
}

// skipNumberOrWord returns the index after the number or word that begins at i.
func skipNumberOrWord(b []byte, i int) int {
	for i++; i < len(b); i++ {
		if b[i] == ',' || b[i] == ']' || b[i] == '}' {
			return i
		}
	}
	return len(b)
}

// forEachElement calls found with every element of an array until found returns false.
func forEachElement(array []byte, found func(value []byte) bool) {
	for i := 1; i < len(array)-1; {
		end := skipValue(array, i)
		if !found(array[i:end]) {
			return
		}
		i = end + 1
	}
}

// forEachMember calls found with the decoded name and the value of every member of an object. Both
// may alias object.
func forEachMember(object []byte, found func(name, value []byte)) {
	for i := 1; i < len(object)-1; {
		end := skipString(object, i)
		name := object[i+1 : max(end-1, i+1)]
		if bytes.IndexByte(name, '\\') >= 0 {
			name, _ = jcs.AppendDecoded(nil, object[i:end])
		}
		if end++; end > len(object) { // after the colon
			return
		}
		i = skipValue(object, end)
		found(name, object[end:i])
		i++
	}
}
