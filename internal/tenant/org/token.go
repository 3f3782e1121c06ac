package org

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// The format of an ingest key is
//
//	apl_<env>_<id>_<secret><crc>
//
// with env [a-z0-9]{1,16}, id [a-z2-7]{26}, secret [a-z2-7]{52} (260 bits), and crc the CRC-32 (IEEE) of everything
// before it as 8 lower-case hex digits. The checksum helps to find keys in text and to reject typing errors early. It
// protects no secret.
const (
	tokenPrefix = "apl"
	idSize      = 26
	secretSize  = 52
	crcSize     = 8

	maxToken = len(tokenPrefix) + 16 + idSize + secretSize + crcSize + 3
)

// Token is an ingest key with its secret. It prints as its public part. The text is behind a function, because fmt
// calls no methods on nested fields and would print the field of a struct that contains a Token.
type Token struct{ text func() string }

// generateToken returns a random token and the ID in it.
func generateToken(env string) (Token, string) {
	key := randomText(1)
	text := tokenPrefix + "_" + env + "_" + key + "_" + randomText(2)
	sum := checksumText(text)
	text += string(sum[:])
	return Token{func() string { return text }}, key
}

// randomText returns n times 26 characters of [a-z2-7], 130 random bits each.
func randomText(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(strings.ToLower(rand.Text()))
	}
	return b.String()
}

func checksumText(s string) (digits [crcSize]byte) {
	var crc [crcSize / 2]byte
	binary.BigEndian.PutUint32(crc[:], crc32.ChecksumIEEE([]byte(s)))
	hex.Encode(digits[:], crc[:])
	return digits
}

// parseToken returns the ID of a well-formed token.
func parseToken(s string) (key string, ok bool) {
	if len(s) > maxToken {
		return "", false
	}
	prefix, rest, _ := strings.Cut(s, "_")
	env, rest, _ := strings.Cut(rest, "_")
	key, secret, _ := strings.Cut(rest, "_")
	if prefix != tokenPrefix || !validEnvironment(env) {
		return "", false
	}
	if len(key) != idSize || len(secret) != secretSize+crcSize || !encodeBase32(key) ||
		!encodeBase32(secret[:secretSize]) {
		return "", false
	}
	body := len(s) - crcSize
	sum := checksumText(s[:body])
	return key, string(sum[:]) == s[body:]
}

func encodeBase32(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// Reveal returns the whole token, or "" for the zero value.
func (t Token) Reveal() string {
	if t.text == nil {
		return ""
	}
	return t.text()
}

// shownPrefix returns the part that is not secret.
func (t Token) shownPrefix() string {
	text := t.Reveal()
	return text[:max(0, len(text)-secretSize-crcSize-1)]
}

func (t Token) hashToken() id.Hash { return hashTokenText(t.Reveal()) }

func hashTokenText(s string) id.Hash {
	var onStack [maxToken]byte
	return sha256.Sum256(append(onStack[:0], s...))
}

// String returns the public part.
func (t Token) String() string { return t.shownPrefix() + "_[secret]" }

// LogValue implements slog.LogValuer.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Format implements fmt.Formatter.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.String()) }
