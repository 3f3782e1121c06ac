// Package seal keeps private keys secret at rest: it encrypts them under a
// master key that lies outside of the store.
//
// Invariants:
//
//   - A sealed value opens only under the key that sealed it and in the context
//     it was sealed for; any changed bit is an error, never other plaintext.
//   - Nonces are random and 24 bytes long, so one key may seal without counting.
//   - Master keys are 32 bytes and are read from strict text. A master key file that
//     other users can read or write is rejected.
//   - No key shows in a log line or a formatted value.
//
// Sealed form: version byte 1, key id (8 bytes), nonce (24 bytes), then
// XChaCha20-Poly1305 ciphertext and tag (draft-irtf-cfrg-xchacha-03). The bytes
// before the nonce and the context are authenticated with it.
package seal

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"

	"github.com/agentledger/agentledger/internal/secret"
)

// ErrMalformed is returned (wrapped) for a master key in another than the one
// accepted form. The text itself is never repeated.
var ErrMalformed = errors.New("malformed master key")

const (
	keySize  = 32
	redacted = "[master key]"
)

// Key is a master key. The zero value is none and seals nothing.
//
// The bytes lie behind a function: fmt, when it walks into a struct that holds a
// Key in a field of its own, calls no method and follows pointers for some verbs,
// but of a function it shows the address alone.
type Key struct{ secret func() *[keySize]byte }

func deriveKey(b *[keySize]byte) Key { return Key{func() *[keySize]byte { return b }} }

// NewKey returns a random master key.
func NewKey() Key {
	var b [keySize]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return deriveKey(&b)
}

// KeyFromSecret reads a master key as it is given by a secret store or the
// environment: base64 (standard alphabet, padded) of 32 bytes, and at most one line end after it.
func KeyFromSecret(s string) (Key, error) {
	s = secret.TrimLineEnd(s)
	if err := secret.CheckLine(s); err != nil {
		return Key{}, fmt.Errorf("read secret: %w: %w", ErrMalformed, err)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != keySize || base64.StdEncoding.EncodeToString(b) != s {
		return Key{}, fmt.Errorf("read secret: %w", ErrMalformed)
	}
	return deriveKey((*[keySize]byte)(b)), nil
}

// keyID names a key in the values it sealed.
type keyID [8]byte

// fingerprint is a hash under its own label, so it says nothing of the key.
func (k Key) fingerprint() keyID {
	h := sha256.New()
	h.Write([]byte("agentledger/seal/key-id/v1\n"))
	h.Write(k.secret()[:])
	return keyID(h.Sum(nil))
}

// deriveSecret returns the secret of a label, by HKDF with SHA-256 (RFC 5869).
func (k Key) deriveSecret(label string) [keySize]byte {
	s, err := hkdf.Key(sha256.New, k.secret()[:], nil, label, keySize)
	if err != nil {
		panic("derive a secret: " + err.Error()) // only for a length that is too large
	}
	return [keySize]byte(s)
}

// String and LogValue say that this is a key and not which one; Format does so
// for every verb.
func (k Key) String() string { return redacted }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// Format implements fmt.Formatter.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }
