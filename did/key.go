// Package did writes agents' public keys as decentralized identifiers: did:key
// and did:web, the documents they resolve to, and the Multikey encoding below
// both.
//
// Invariants:
//
//   - One key has one text. A Multikey is `z` and 47 base58btc characters, and a Parse
//     function accepts exactly the bytes that this package writes.
//   - Only Ed25519 keys. The X25519 key of a did:key document is derived from
//     the Ed25519 one, never stored.
//   - A did:web document lists a key that is not active with its end time, and in no
//     relationship.
//   - Documents are values: the same keys give the same bytes. No I/O, no clock.
//
// Sources: W3C DID Core 1.0, W3C Controlled Identifiers 1.0 (Multikey, expires,
// revoked), the did:key and did:web method specifications of the W3C CCG.
//
// Errors wrap ErrMalformed. All functions may be called concurrently.
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

// ErrMalformed is wrapped by the errors of all Parse functions, for any text that this
// package would not write.
var ErrMalformed = errors.New("malformed")

const (
	keyPrefix      = "did:key:"
	multikeyLength = 48 // `z` and 34 bytes in base58btc
)

// codec is a multicodec header: the varint of a key type.
type codec [2]byte

func ed25519KeyCodec() codec { return codec{0xed, 0x01} }
func x25519KeyCodec() codec  { return codec{0xec, 0x01} }

// Multikey returns the W3C Multikey of an Ed25519 public key, 48 characters
// beginning z6Mk.
func Multikey(pub [32]byte) string { return ed25519KeyCodec().encodeMultikey(pub) }

// ParseMultikey is the inverse of Multikey. It looks at the encoding only: that
// the 32 bytes are a good public key is checked where keys are registered.
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

// ParseKey is the inverse of KeyDID. Fragments, version segments, other key
// types and other multibases are refused.
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
		panic("did: base58btc is not known to multibase: " + err.Error())
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
