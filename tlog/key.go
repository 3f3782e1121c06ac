package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/agentledger/agentledger/internal/edkey"
)

const (
	// MaxName is the length in bytes of the longest key name and origin.
	MaxName = 255

	keyHashSize = 4
	algEd25519  = 1 // signature type of C2SP signed-note
)

// KeyHash tells keys of one name apart: the key ID of C2SP signed-note. It is
// too short to identify a key by itself.
type KeyHash uint32

// String returns 8 lower-case hex digits.
func (h KeyHash) String() string { return fmt.Sprintf("%08x", uint32(h)) }

// VerifierKey is a named Ed25519 public key that signs notes (vkey). It is
// comparable; the zero value is no key and verifies nothing.
type VerifierKey struct {
	name   string
	hash   KeyHash
	public edkey.Public
}

// NewVerifierKey names a public key. The name has 1 to MaxName bytes of UTF-8
// and no space, plus or control character.
func NewVerifierKey(name string, public edkey.Public) (VerifierKey, error) {
	if len(name) > MaxName || !validName(name) {
		return VerifierKey{}, fmt.Errorf("note key: name: %w", ErrMalformed)
	}
	if public.IsZero() {
		return VerifierKey{}, fmt.Errorf("note key: no public key: %w", ErrMalformed)
	}
	sum := sha256.Sum256(append([]byte(name+"\n"), typed(public)...))
	return VerifierKey{name: name, hash: KeyHash(binary.BigEndian.Uint32(sum[:])), public: public}, nil
}

// ParseVerifierKey reads exactly what String writes. The public key must pass
// edkey.ParsePublic.
func ParseVerifierKey(vkey string) (VerifierKey, error) {
	name, rest, _ := strings.Cut(vkey, "+")
	_, encoded, _ := strings.Cut(rest, "+")
	if len(encoded) != base64.StdEncoding.EncodedLen(1+edkey.PublicSize) {
		return VerifierKey{}, fmt.Errorf("parse note key: length: %w", ErrMalformed)
	}
	b, ok := decodeBase64(encoded)
	if !ok || len(b) != 1+edkey.PublicSize || b[0] != algEd25519 {
		return VerifierKey{}, fmt.Errorf("parse note key: not an Ed25519 key: %w", ErrMalformed)
	}
	public, err := edkey.ParsePublic(b[1:])
	if err != nil {
		return VerifierKey{}, fmt.Errorf("parse note key: %w: %w", ErrMalformed, err)
	}
	key, err := NewVerifierKey(name, public)
	if err != nil {
		return VerifierKey{}, fmt.Errorf("parse note key: %w", err)
	}
	if key.String() != vkey {
		return VerifierKey{}, fmt.Errorf("parse note key: key hash: %w", ErrMalformed)
	}
	return key, nil
}

// typed returns the public key behind its signature type.
func typed(public edkey.Public) []byte {
	b := public.Bytes()
	return append([]byte{algEd25519}, b[:]...)
}

// Name returns the key's name, for a log key its origin.
func (k VerifierKey) Name() string { return k.name }

// Hash returns the first 4 bytes of SHA-256(name LF 0x01 public key).
func (k VerifierKey) Hash() KeyHash { return k.hash }

// Public returns the key itself.
func (k VerifierKey) Public() edkey.Public { return k.public }

// String returns name+hash+base64(0x01 || public key), the form that is
// configured and published.
func (k VerifierKey) String() string {
	return k.name + "+" + k.hash.String() + "+" + base64.StdEncoding.EncodeToString(typed(k.public))
}

// SignerKey is the private half of a VerifierKey. Printing it shows the public
// half. It is safe for concurrent use.
type SignerKey struct {
	verifier VerifierKey
	// A function and not the key: printing a struct that holds a SignerKey
	// somewhere inside goes past all methods and would show the key's bytes.
	sign func(message []byte) [edkey.SignatureSize]byte
}

// NewSignerKey names a private key; for the name see NewVerifierKey.
func NewSignerKey(name string, private edkey.Private) (SignerKey, error) {
	verifier, err := NewVerifierKey(name, private.Public())
	if err != nil {
		return SignerKey{}, err
	}
	return SignerKey{verifier: verifier, sign: private.Sign}, nil
}

// Verifier returns the public half.
func (k SignerKey) Verifier() VerifierKey { return k.verifier }

// signature returns the key's signature line for a text.
func (k SignerKey) signature(text string) Signature {
	value := k.sign([]byte(text))
	return Signature{Name: k.verifier.name, KeyHash: k.verifier.hash, Value: value[:]}
}

// Format writes the public half for every verb.
func (k SignerKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.verifier.String()) }
