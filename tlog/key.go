package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/agentledger/agentledger/edkey"
)

const (
	// MaxName is the maximum length of a key name and of an origin in bytes.
	MaxName = 255

	keyHashSize = 4
)

// Signature types of C2SP signed-note.
const (
	algEd25519     = 1 // over the text of the note
	algCosignature = 4 // over a time and the text, C2SP tlog-cosignature with Ed25519
	algMLDSA44     = 6 // over a tree and a time, C2SP tlog-cosignature with ML-DSA-44
)

// KeyHash is the key ID of C2SP signed-note. It distinguishes keys of one name. It is too short to
// identify a key on its own.
type KeyHash uint32

// String returns 8 lower-case hex digits.
func (h KeyHash) String() string { return fmt.Sprintf("%08x", uint32(h)) }

// VerifierKey is a named Ed25519 public key that signs notes (vkey). It is comparable. The zero
// value is not a key and verifies nothing.
type VerifierKey struct {
	name   string
	hash   KeyHash
	public edkey.Public
}

// NewVerifierKey names a public key. The name is 1 to MaxName bytes of UTF-8 without spaces, plus
// signs and control characters.
func NewVerifierKey(name string, public edkey.Public) (VerifierKey, error) {
	hash, err := computeKeyHash(name, publicKeyWithType(algEd25519, public))
	return VerifierKey{name: name, hash: hash, public: public}, err
}

// computeKeyHash checks name and key and returns the key hash. typed is the signature type followed
// by the public key, or nil if there is no key.
func computeKeyHash(name string, typed []byte) (KeyHash, error) {
	if len(name) > MaxName || !isValidKeyName(name) {
		return 0, fmt.Errorf("note key: name: %w", ErrMalformed)
	}
	if typed == nil {
		return 0, fmt.Errorf("note key: no public key: %w", ErrMalformed)
	}
	sum := sha256.Sum256(append([]byte(name+"\n"), typed...))
	return KeyHash(binary.BigEndian.Uint32(sum[:])), nil
}

// ParseVerifierKey accepts only the spelling that String writes. The public key must pass
// edkey.ParsePublic.
func ParseVerifierKey(vkey string) (VerifierKey, error) {
	name, hash, public, err := parseEd25519Key(vkey, algEd25519)
	return VerifierKey{name: name, hash: hash, public: public}, err
}

// parseEd25519Key parses a vkey with an Ed25519 key of one signature type.
func parseEd25519Key(vkey string, alg byte) (name string, hash KeyHash, public edkey.Public, err error) {
	name, hash, material, err := parseKeyMaterial(vkey, alg, edkey.PublicSize)
	if err != nil {
		return "", 0, edkey.Public{}, err
	}
	if public, err = edkey.ParsePublic(material); err != nil {
		return "", 0, edkey.Public{}, fmt.Errorf("parse note key: public key: %w: %w", ErrMalformed, err)
	}
	return name, hash, public, nil
}

// parseKeyMaterial parses a vkey of one signature type, in the one spelling that formatVerifierKey
// writes. material has size bytes and is not checked further.
func parseKeyMaterial(vkey string, alg byte, size int) (name string, hash KeyHash, material []byte, err error) {
	fail := func(what string, err error) (string, KeyHash, []byte, error) {
		return "", 0, nil, fmt.Errorf("parse note key: %s: %w", what, err)
	}
	name, rest, _ := strings.Cut(vkey, "+")
	_, encoded, _ := strings.Cut(rest, "+")
	if len(encoded) != base64.StdEncoding.EncodedLen(1+size) {
		return fail("length", ErrMalformed)
	}
	b, ok := decodeCanonicalBase64(encoded)
	if !ok || len(b) != 1+size || b[0] != alg {
		return fail("signature type", ErrMalformed)
	}
	if hash, err = computeKeyHash(name, b); err != nil {
		return fail("name", err)
	}
	if formatVerifierKey(name, hash, b) != vkey {
		return fail("key hash", ErrMalformed)
	}
	return name, hash, b[1:], nil
}

// publicKeyWithType returns the signature type followed by the public key, or nil for
// the zero key.
func publicKeyWithType(alg byte, public edkey.Public) []byte {
	if public.IsZero() {
		return nil
	}
	b := public.Bytes()
	return append([]byte{alg}, b[:]...)
}

func formatVerifierKey(name string, hash KeyHash, typed []byte) string {
	return name + "+" + hash.String() + "+" + base64.StdEncoding.EncodeToString(typed)
}

// Name returns the key's name. The name of a log's key is the origin.
func (k VerifierKey) Name() string { return k.name }

// Hash returns the first 4 bytes of SHA-256(name LF 0x01 public key).
func (k VerifierKey) Hash() KeyHash { return k.hash }

// Public returns the public key.
func (k VerifierKey) Public() edkey.Public { return k.public }

// String returns name+hash+base64(0x01 || public key), the form used in settings and for
// publication.
func (k VerifierKey) String() string {
	return formatVerifierKey(k.name, k.hash, publicKeyWithType(algEd25519, k.public))
}

// SignerKey is the private half of a VerifierKey. Printing it prints the public half. It is safe
// for concurrent use.
type SignerKey struct {
	verifier VerifierKey
	// A function instead of the key: fmt does not call methods of unexported fields, so
	// printing a struct that contains a SignerKey would print the key's bytes.
	sign func(message []byte) [edkey.SignatureSize]byte
}

// NewSignerKey names a private key. The name follows the rules of NewVerifierKey.
func NewSignerKey(name string, private edkey.Private) (SignerKey, error) {
	verifier, err := NewVerifierKey(name, private.Public())
	if err != nil {
		return SignerKey{}, err
	}
	return SignerKey{verifier: verifier, sign: private.Sign}, nil
}

// Verifier returns the public half.
func (k SignerKey) Verifier() VerifierKey { return k.verifier }

// signatureOver returns the key's signature line for a text.
func (k SignerKey) signatureOver(text string) Signature {
	value := k.sign([]byte(text))
	return Signature{Name: k.verifier.name, KeyHash: k.verifier.hash, Value: value[:]}
}

// Format writes the public half for every verb.
func (k SignerKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.verifier.String()) }
