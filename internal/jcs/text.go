package jcs

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// spelling is how a string is written.
type spelling uint8

const (
	plain   spelling = iota // without escapes: canonical
	minimal                 // with canonical escapes only
	loose                   // with other escapes
)

// flaw is the defect of a string.
type flaw uint8

const (
	sound flaw = iota
	malformedText
	notUTF8
	loneSurrogate
)

// canonicalizeString reads the string whose opening quote is the next byte and writes it in
// canonical spelling. raw is the source without the quotes.
func (s *scanner) canonicalizeString() (raw []byte, sp spelling, f flaw) {
	from := s.pos + 1
	end, sp, f := scanStringText(s.src, from)
	if f != sound {
		return nil, sp, f
	}
	raw = s.src[from:end]
	if sp != loose {
		s.copyToOutput(end + 1 - s.pos)
		return raw, sp, sound
	}
	if s.same {
		s.startSeparateOutput(s.pos)
	}
	s.scratch = appendUnescaped(s.scratch[:0], raw)
	s.out = appendQuoted(s.out, s.scratch)
	s.pos = end + 1
	return raw, sp, sound
}

// scanStringText reads from i, the position after the opening quote, and returns the position of
// the closing quote.
func scanStringText(src []byte, i int) (end int, sp spelling, f flaw) {
	for {
		i = skipPlainBytes(src, i)
		if i == len(src) {
			return i, sp, malformedText
		}
		switch c := src[i]; {
		case c == '"':
			return i, sp, sound
		case c == '\\':
			r, n, f := scanEscape(src[i:])
			if f != sound {
				return i, sp, f
			}
			sp = max(sp, classifyEscape(r, src[i:i+n]))
			i += n
		case c < ' ':
			return i, sp, malformedText
		default:
			_, n := utf8.DecodeRune(src[i:])
			if n == 1 {
				return i, sp, notUTF8
			}
			i += n
		}
	}
}

// skipPlainBytes returns the first position from i on that is the end of src, a quote, a backslash,
// a control character, or a byte of a multi-byte character. It reads eight bytes at a time. Each
// term sets the high bit of every such byte. It can set the high bit of another byte only above
// such a byte, so the lowest set bit is correct.
func skipPlainBytes(src []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(src); i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		found := (w | (w - ones*' ') | ((w ^ ones*'"') - ones) | ((w ^ ones*'\\') - ones)) & high
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(src) && src[i] >= ' ' && src[i] < utf8.RuneSelf && src[i] != '"' && src[i] != '\\' {
		i++
	}
	return i
}
