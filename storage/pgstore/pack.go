package pgstore

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// A run of hex or base64 characters is stored as a mark, the number of units, and the decoded bytes. This pays off
// because digests, random IDs, keys and signatures are half of an event's texts, and match compression does not shorten
// them.
const (
	hexMark    = 1 // units of two lower-case digits
	base64Mark = 2 // units of four characters of the standard alphabet

	shortestHex    = 16
	shortestBase64 = 32 // longer than words
	mostUnits      = 255
)

// Kinds of runs that a character may belong to.
const (
	inHex = 1 << iota
	inBase64
)

// alphabet contains the kinds of runs that each character may belong to.
type alphabet [256]uint8

func newAlphabet() *alphabet {
	var a alphabet
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		a[c] |= inBase64
	}
	for _, c := range []byte("0123456789abcdef") {
		a[c] |= inHex
	}
	return &a
}

// run returns the number of characters at the start of s that may belong to a kind of run.
func (a *alphabet) run(s []byte, what uint8) int {
	n := 0
	for n < len(s) && a[s[n]]&what != 0 {
		n++
	}
	return n
}

// pack appends s with its runs packed. It returns false if s contains a mark, which canonical JSON never does; s must
// then be stored unpacked.
func (a *alphabet) pack(dst, s []byte) ([]byte, bool) {
	if bytes.IndexByte(s, hexMark) >= 0 || bytes.IndexByte(s, base64Mark) >= 0 {
		return dst, false
	}
	plain := 0 // s[plain:i] is still to be copied
	for i := 0; i+shortestHex <= len(s); {
		// A run that is long enough cannot start before the last of the next few characters that is not in the
		// alphabet.
		last := i + shortestHex - 1
		for last >= i && a[s[last]]&inBase64 != 0 {
			last--
		}
		if last >= i {
			i = last + 1
			continue
		}
		end := i + shortestHex + a.run(s[i+shortestHex:], inBase64)
		dst, plain = a.packRun(append(dst, s[plain:i]...), s, i, end)
		i = end
	}
	return append(dst, s[plain:]...), true
}

// packRun appends the packed form of the run s[i:end]. It returns the index from which s is still to be copied.
func (a *alphabet) packRun(dst, s []byte, i, end int) (_ []byte, plain int) {
	for {
		taken := 0
		if end-i >= shortestHex {
			taken = a.run(s[i:min(end, i+2*mostUnits)], inHex) &^ 1
		}
		switch {
		case taken >= shortestHex:
			dst, _ = hex.AppendDecode(append(dst, hexMark, byte(taken/2)), s[i:i+taken]) // they are digits
		case end-i >= shortestBase64:
			taken = min(end-i, 4*mostUnits) &^ 3
			// they are in the alphabet
			dst, _ = base64.StdEncoding.AppendDecode(append(dst, base64Mark, byte(taken/4)), s[i:i+taken])
		default:
			return dst, i
		}
		i += taken
	}
}

// unpack appends the input of pack. It returns false if packed is not an output of pack.
func (a *alphabet) unpack(dst, packed []byte) ([]byte, bool) {
	for plain, i := 0, 0; ; {
		for i < len(packed) && packed[i] != hexMark && packed[i] != base64Mark {
			i++
		}
		dst = append(dst, packed[plain:i]...)
		if i == len(packed) {
			return dst, true
		}
		if i+1 == len(packed) {
			return dst, false
		}
		mark, units := packed[i], int(packed[i+1])
		i += 2
		size := units
		if mark == base64Mark {
			size = 3 * units
		}
		if size > len(packed)-i {
			return dst, false
		}
		if mark == hexMark {
			dst = hex.AppendEncode(dst, packed[i:i+size])
		} else {
			dst = base64.StdEncoding.AppendEncode(dst, packed[i:i+size])
		}
		i += size
		plain = i
	}
}
