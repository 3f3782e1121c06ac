// Package seal encrypts private keys and other secrets at rest, under a master key that is kept outside of the store.
// It hides the cipher, the sealed form and the choice of the key: callers have a Keyring.
//
// Invariants:
//
//   - A sealed value opens only under the key and for the context that it was sealed with. If any bit was changed, opening it
//     is an error; it never yields other plaintext.
//   - Nonces are random and 24 bytes long, so a key can seal any number of values without a counter.
//   - Master keys are 32 bytes with one accepted text form. A master key file that other users can read or write is rejected.
//   - No key appears in a log line or a formatted value.
//
// Sealed form: version byte 1, key ID (8 bytes), nonce (24 bytes), then ciphertext and tag of XChaCha20-Poly1305
// (draft-irtf-cfrg-xchacha-03). The bytes before the nonce and the context are authenticated as additional data.
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

// ErrMalformed is returned (wrapped) for a master key that is not in the accepted text form. Errors never contain the
// text.
var ErrMalformed = errors.New("malformed master key")

const (
	keySize  = 32
	redacted = "[master key]"
)

// Key is a master key. The zero value is no key, and NewKeyring rejects it.
//
// The bytes are hidden behind a function because fmt, when it prints a struct with an unexported field of type Key,
// does not call the methods below and follows pointers for some verbs. Of a function it prints only the address.
type Key struct{ secret func() *[keySize]byte }

func deriveKey(b *[keySize]byte) Key { return Key{func() *[keySize]byte { return b }} }

// NewKey returns a random master key.
func NewKey() Key {
	var b [keySize]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return deriveKey(&b)
}

// KeyFromSecret parses a master key from a secret store or the environment: base64 (standard alphabet, padded) of 32
// bytes, with at most one line end after it.
func KeyFromSecret(s string) (Key, error) {
	s = secret.TrimLineEnd(s)
	if err := secret.CheckLine(s); err != nil {
		return Key{}, fmt.Errorf("read master key: %w: %w", ErrMalformed, err)
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != keySize || base64.StdEncoding.EncodeToString(b) != s {
		return Key{}, fmt.Errorf("read master key: %w", ErrMalformed)
	}
	return deriveKey((*[keySize]byte)(b)), nil
}

// keyID identifies a key in the values that it sealed.
type keyID [8]byte

// fingerprint is a hash with its own label, so it reveals nothing about the key.
func (k Key) fingerprint() keyID {
	h := sha256.New()
	h.Write([]byte("agentledger/seal/key-id/v1\n"))
	h.Write(k.secret()[:])
	return keyID(h.Sum(nil))
}

// deriveSecret derives the secret of a label by HKDF with SHA-256 (RFC 5869).
func (k Key) deriveSecret(label string) [keySize]byte {
	s, err := hkdf.Key(sha256.New, k.secret()[:], nil, label, keySize)
	if err != nil {
		panic("derive a secret: " + err.Error()) // only for a length that is too large
	}
	return [keySize]byte(s)
}

// String implements fmt.Stringer. Like LogValue and Format, it does not reveal the key.
func (k Key) String() string { return redacted }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// Format implements fmt.Formatter.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }
