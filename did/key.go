// Package did writes the public keys of agents as decentralized identifiers: did:key and did:web,
// the documents that they resolve to, and the underlying Multikey encoding.
//
// Invariants:
//
//   - Each key has exactly one text. A Multikey is `z` followed by 47 base58btc characters, and a
//     Parse function accepts exactly the bytes that this package writes.
//   - Only Ed25519 keys are supported. The X25519 key in a did:key document is derived from the
//     Ed25519 key and never stored.
//   - A did:web document lists an inactive key with its end time and in no relationship.
//   - Documents are values: the same keys give the same bytes. No I/O, no clock.
//
// Sources: W3C DID Core 1.0, W3C Controlled Identifiers 1.0 (Multikey, expires, revoked), the
// did:key and did:web method specifications of the W3C CCG.
//
// Errors wrap ErrMalformed. All functions are safe for concurrent use.
//
// The package is stable in the sense of README, section Stability.
package did

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/edwards25519"
	"github.com/multiformats/go-multibase"
)

// ErrMalformed is wrapped by the errors of all Parse functions if the text is not one that this
// package would write.
var ErrMalformed = errors.New("malformed")

const (
	keyPrefix      = "did:key:"
	multikeyLength = 48 // `z` and 34 bytes in base58btc
)

// codec is a multicodec header: the varint of a key type.
type codec [2]byte

func ed25519KeyCodec() codec { return codec{0xed, 0x01} }
func x25519KeyCodec() codec  { return codec{0xec, 0x01} }

// Multikey returns the W3C Multikey of an Ed25519 public key: 48 characters that begin with z6Mk.
func Multikey(pub [32]byte) string { return ed25519KeyCodec().encodeMultikey(pub) }

// ParseMultikey is the inverse of Multikey. It checks only the encoding. Whether the 32 bytes are a
// valid public key is checked when a key is registered.
func ParseMultikey(s string) ([32]byte, error) {
	if len(s) != multikeyLength || s[0] != multibase.Base58BTC {
		return [32]byte{}, fmt.Errorf("multikey: %w", ErrMalformed)
	}
	_, b, err := multibase.Decode(s)
	if err != nil || len(b) != 34 || codec(b[:2]) != ed25519KeyCodec() {
		return [32]byte{}, fmt.Errorf("multikey: %w", ErrMalformed)
	}
	pub := [32]byte(b[2:])
	if Multikey(pub) != s {
		return [32]byte{}, fmt.Errorf("multikey: %w", ErrMalformed)
	}
	return pub, nil
}

// KeyDID returns the did:key of an Ed25519 public key.
func KeyDID(pub [32]byte) string { return keyPrefix + Multikey(pub) }

// ParseKey is the inverse of KeyDID. It rejects fragments, version segments, other key types and
// other multibases.
func ParseKey(did string) ([32]byte, error) {
	multikey, ok := strings.CutPrefix(did, keyPrefix)
	if !ok {
		return [32]byte{}, fmt.Errorf("did:key: %w", ErrMalformed)
	}
	pub, err := ParseMultikey(multikey)
	if err != nil {
		return [32]byte{}, fmt.Errorf("did:key: %w", err)
	}
	return pub, nil
}

func (c codec) encodeMultikey(key [32]byte) string {
	s, err := multibase.Encode(multibase.Base58BTC, append(c[:], key[:]...))
	if err != nil {
		panic("did: multibase does not support base58btc: " + err.Error())
	}
	return s
}

// agreementMultikey derives the X25519 key of an Ed25519 key by the birational
// map of RFC 7748 section 4.1 and returns its Multikey (z6LS…).
func agreementMultikey(pub [32]byte) (string, error) {
	point, err := new(edwards25519.Point).SetBytes(pub[:])
	if err != nil {
		return "", fmt.Errorf("derive X25519 key: %w: %w", ErrMalformed, err)
	}
	return x25519KeyCodec().encodeMultikey([32]byte(point.BytesMontgomery())), nil
}
