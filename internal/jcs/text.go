package jcs

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// spelling says how a string's text is written.
type spelling uint8

const (
	plain   spelling = iota // without escapes: canonical
	minimal                 // with escapes, all of them canonical
	loose                   // with other escapes
)

// flaw says what is wrong with a string.
type flaw uint8

const (
	sound flaw = iota
	malformedText
	notUTF8
	loneSurrogate
)

// text reads the string whose opening quote is next and writes it in canonical
// spelling. raw is its source without the quotes.
func (s *scanner) text() (raw []byte, sp spelling, f flaw) {
	from := s.pos + 1
	end, sp, f := scanText(s.src, from)
	if f != sound {
		return nil, sp, f
	}
	raw = s.src[from:end]
	if sp != loose {
		s.emit(end + 1 - s.pos)
		return raw, sp, sound
	}
	if s.same {
		s.diverge(s.pos)
	}
	s.scratch = appendDecoded(s.scratch[:0], raw)
	s.out = appendText(s.out, s.scratch)
	s.pos = end + 1
	return raw, sp, sound
}

// scanText reads from i, behind the opening quote, and returns where the closing
// quote is.
func scanText(src []byte, i int) (end int, sp spelling, f flaw) {
	for {
		i = skipPlain(src, i)
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
			sp = max(sp, spellingOf(r, src[i:i+n]))
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

// skipPlain returns the first i at or after i where src ends or holds a quote, a
// backslash, a control or a byte of a multi-byte character. It looks at eight
// bytes at a time: each term has the high bit of every such byte set, and of
// others only above one, so the lowest bit found is right.
func skipPlain(src []byte, i int) int {
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
