package edkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
)

// Private is an Ed25519 signing key. The zero value is not a key, and its methods panic.
type Private struct {
	key ed25519.PrivateKey // never changed after construction
}

// NewPrivate returns a random key.
func NewPrivate() Private {
	var seed [SeedSize]byte
	rand.Read(seed[:]) // never fails since Go 1.24
	return Private{key: ed25519.NewKeyFromSeed(seed[:])}
}

// PrivateFromSeed returns the key of a 32-byte seed (RFC 8032, section 5.1.5). It copies the seed.
// The error wraps ErrLength.
func PrivateFromSeed(seed []byte) (Private, error) {
	if len(seed) != SeedSize {
		return Private{}, fmt.Errorf("parse seed: %w", ErrLength)
	}
	return Private{key: ed25519.NewKeyFromSeed(seed)}, nil
}

// Public returns the public key. A key derived from a seed is always in the prime-order subgroup,
// so Public does not check it again.
func (k Private) Public() Public {
	return Public{encoded: [PublicSize]byte(k.key[SeedSize:])}
}

// Sign returns the signature of message. Ed25519 is deterministic: equal messages have equal
// signatures.
func (k Private) Sign(message []byte) [SignatureSize]byte {
	return [SignatureSize]byte(ed25519.Sign(k.key, message))
}

// Seed returns the secret 32 bytes, for storing the key.
func (k Private) Seed() [SeedSize]byte { return [SeedSize]byte(k.key.Seed()) }

// String returns a fixed text that does not identify the key.
func (Private) String() string { return "[private key]" }

// Format writes the text of String for every verb, including those that print fields.
func (k Private) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }
