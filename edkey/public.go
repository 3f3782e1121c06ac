// Package edkey implements the strict Ed25519 rule: which public keys and which signatures count.
// Agents, logs and witnesses share it.
//
// Invariants:
//
//   - A Public from ParsePublic is the canonical encoding of a point of the prime-order subgroup
//     other than the identity. The zero value verifies nothing.
//   - Stored returns a Public of bytes that ParsePublic accepted earlier, without checking them.
//   - A signature counts if crypto/ed25519 accepts it and its R is not of small order. Cofactorless
//     and cofactored, strict and lenient verifiers agree on every signature that counts.
//   - A Table gives the same result as Public.Verify for every key, message and signature.
//   - There is no batch verification, because its results differ from those of single verification.
//   - fmt and slog never reveal a Private.
//
// All functions and methods are safe for concurrent use.
//
// The package is stable in the sense of README, section Stability.
package edkey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"filippo.io/edwards25519"
)

// Sizes in bytes (RFC 8032).
const (
	PublicSize    = 32
	SeedSize      = 32
	SignatureSize = 64
)

// Reasons why ParsePublic rejects a key.
var (
	ErrLength     = errors.New("wrong length")
	ErrEncoding   = errors.New("not the canonical encoding of a curve point")
	ErrSmallOrder = errors.New("point of small order")
	ErrTorsion    = errors.New("point outside of the prime-order subgroup")
)

// Public is a checked Ed25519 public key. It is comparable.
type Public struct {
	encoded [PublicSize]byte
}

// ParsePublic parses the 32-byte encoding of RFC 8032, section 5.1.2. It rejects non-canonical
// encodings and points of small or mixed order. Errors wrap ErrLength, ErrEncoding, ErrSmallOrder
// or ErrTorsion. A call costs about as much as one verification, so call it once for each key, for
// example when it is registered.
func ParsePublic(b []byte) (Public, error) {
	if len(b) != PublicSize {
		return Public{}, fmt.Errorf("parse public key: %w", ErrLength)
	}
	p, err := new(edwards25519.Point).SetBytes(b)
	if err != nil || !bytes.Equal(p.Bytes(), b) {
		return Public{}, fmt.Errorf("parse public key: %w", ErrEncoding)
	}
	if smallOrder(b) {
		return Public{}, fmt.Errorf("parse public key: %w", ErrSmallOrder)
	}
	if !torsionFree(p) {
		return Public{}, fmt.Errorf("parse public key: %w", ErrTorsion)
	}
	return Public{encoded: [PublicSize]byte(b)}, nil
}

// Stored returns the public key of an encoding that ParsePublic accepted earlier. The encoding MUST
// come from a trusted store, because Stored checks nothing. It is for long lists of keys, for
// example those in DID documents.
func Stored(encoded [PublicSize]byte) Public { return Public{encoded: encoded} }

// torsionFree reports whether L·p is the identity, where L is the order of the subgroup. Scalars
// are reduced modulo L, so it checks that (L-1)·p is -p.
func torsionFree(p *edwards25519.Point) bool {
	var one [32]byte
	one[0] = 1
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(one[:])
	if err != nil {
		return false
	}
	s.Negate(s)
	times := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(s, p, edwards25519.NewScalar())
	return times.Equal(new(edwards25519.Point).Negate(p)) == 1
}

// Bytes returns the 32-byte encoding.
func (k Public) Bytes() [PublicSize]byte { return k.encoded }

// String returns the encoding in standard base64 with padding.
func (k Public) String() string { return base64.StdEncoding.EncodeToString(k.encoded[:]) }

// IsZero reports whether k is the zero value, which is not a key.
func (k Public) IsZero() bool { return k == Public{} }

// Verify reports whether sig is 64 bytes that count as k's signature of message.
func (k Public) Verify(message, sig []byte) bool {
	// The zero value would be a point of order 4, for which anyone can forge signatures.
	if len(sig) != SignatureSize || k.IsZero() || smallOrder(sig[:32]) {
		return false
	}
	return ed25519.Verify(k.encoded[:], message, sig)
}
