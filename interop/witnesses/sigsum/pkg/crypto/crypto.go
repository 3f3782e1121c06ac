// Package crypto has what witnessctl needs to compile.
package crypto

import "crypto/sha256"

// PublicKeySize is the size of an Ed25519 key in bytes.
const PublicKeySize = 32

// PublicKey is an Ed25519 key.
type PublicKey [PublicKeySize]byte

// Hash is a SHA-256 hash.
type Hash [sha256.Size]byte

// HashBytes returns the SHA-256 hash of b.
func HashBytes(b []byte) Hash { return sha256.Sum256(b) }
