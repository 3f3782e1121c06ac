package id

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
)

// Rising returns a new name: prefix followed by 26 characters of 0-9 and a-v, which encode 48 bits
// of milliseconds and 80 random bits. Names with the same prefix sort by now, which must not be
// negative.
func Rising(prefix string, now Instant) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now)<<16)
	rand.Read(b[6:]) // never fails since Go 1.24
	return prefix + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// RisingTime returns the time in a name that Rising returned for prefix. ok is false for any other
// name.
func RisingTime(prefix, name string) (at Instant, ok bool) {
	text, ok := strings.CutPrefix(name, prefix)
	if !ok || text != strings.ToLower(text) {
		return 0, false
	}
	b, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(text))
	if err != nil || len(b) != 16 {
		return 0, false
	}
	return Instant(binary.BigEndian.Uint64(b[:8]) >> 16), true
}
