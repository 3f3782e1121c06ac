package tlog

import (
	"strconv"
	"strings"
)

// appendPosition appends the end of a path: "/", the index in groups of three digits
// with an x before all but the last, and .p/W for a partial tile.
func appendPosition(b []byte, index uint64, width uint16) []byte {
	divisor := uint64(1)
	for index/divisor >= 1000 {
		divisor *= 1000
	}
	for ; divisor > 1; divisor /= 1000 {
		b = append(b, "/x"...)
		b = appendGroup(b, index/divisor%1000)
	}
	b = appendGroup(append(b, '/'), index%1000)
	if width != TileWidth {
		b = strconv.AppendUint(append(b, ".p/"...), uint64(width), 10)
	}
	return b
}

func appendGroup(b []byte, n uint64) []byte {
	return append(b, byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}

// parsePosition accepts only the form that appendPosition appends, without the "/".
func parsePosition(s string) (index uint64, width uint16, ok bool) {
	s, partial, isPartial := strings.Cut(s, ".p/")
	width = TileWidth
	if isPartial {
		w, ok := parseDecimal(partial, TileWidth-1)
		if !ok || w == 0 {
			return 0, 0, false
		}
		width = uint16(w)
	}
	index, ok = parseTileIndex(s)
	return index, width, ok
}

// maxIndexLength is the length of an index of seven groups, enough for 2^64-1.
const maxIndexLength = len("x018/x446/x744/x073/x709/x551/615")

func parseTileIndex(s string) (uint64, bool) {
	if len(s) > maxIndexLength {
		return 0, false
	}
	digits := make([]byte, 0, maxIndexLength)
	for more := true; more; {
		var group string
		group, s, more = strings.Cut(s, "/")
		if more {
			if group == "x000" && len(digits) == 0 {
				return 0, false
			}
			tail, ok := strings.CutPrefix(group, "x")
			if !ok {
				return 0, false
			}
			group = tail
		}
		if len(group) != 3 {
			return 0, false
		}
		digits = append(digits, group...)
	}
	n, err := strconv.ParseUint(string(digits), 10, 64) // rejects everything except digits
	return n, err == nil
}

// parseDecimal parses a number of at most limit in decimal digits without leading zeros.
func parseDecimal(s string, limit uint64) (uint64, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64) // rejects everything except digits
	return n, err == nil && n <= limit
}
