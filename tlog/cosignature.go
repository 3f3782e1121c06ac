package tlog

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"filippo.io/mldsa"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// maxCosigned is the latest time of a cosignature, in seconds since the Unix epoch: the end of the
// year 9999, because RFC 3339 has no later one. C2SP tlog-cosignature allows verifiers to reject
// times in the future.
const maxCosigned = 253402300799

const timeSize = 8 // bytes of the big-endian seconds before the signature

// WitnessKey is a named public key that cosigns checkpoints (C2SP tlog-cosignature): a vkey of
// signature type 0x04, Ed25519, or 0x06, ML-DSA-44. It is comparable. The zero value is not a key
// and verifies nothing.
type WitnessKey struct {
	name   string
	hash   KeyHash
	public edkey.Public // zero if mldsa is set
	mldsa  string       // the bytes of an ML-DSA-44 key, or "" for an Ed25519 key
}

// NewWitnessKey names an Ed25519 public key. The name follows the rules of NewVerifierKey.
func NewWitnessKey(name string, public edkey.Public) (WitnessKey, error) {
	hash, err := computeKeyHash(name, publicKeyWithType(algCosignature, public))
	return WitnessKey{name: name, hash: hash, public: public}, err
}

// ParseWitnessKey accepts only the spelling that String writes. An Ed25519 key must pass
// edkey.ParsePublic. Any 1,312 bytes are an ML-DSA-44 key. Keys of other algorithms are rejected.
func ParseWitnessKey(vkey string) (WitnessKey, error) {
	if len(vkey) > MaxName+mldsaKeyText {
		return WitnessKey{}, fmt.Errorf("parse note key: length: %w", ErrMalformed)
	}
	if name, hash, material, err := parseKeyMaterial(vkey, algMLDSA44, mldsa.MLDSA44PublicKeySize); err == nil {
		return WitnessKey{name: name, hash: hash, mldsa: string(material)}, nil
	}
	name, hash, public, err := parseEd25519Key(vkey, algCosignature)
	return WitnessKey{name: name, hash: hash, public: public}, err
}

// Name returns the key's name.
func (k WitnessKey) Name() string { return k.name }

// Hash returns the first 4 bytes of SHA-256(name LF type public key).
func (k WitnessKey) Hash() KeyHash { return k.hash }

// Identity identifies the key regardless of its name, because two keys that differ only in the name
// are one witness. It is the public key in base64, or for an ML-DSA-44 key "mldsa44-" followed by
// the SHA-256 of the key in hex.
func (k WitnessKey) Identity() string {
	if k.mldsa == "" {
		return k.public.String()
	}
	return fmt.Sprintf("mldsa44-%x", sha256.Sum256([]byte(k.mldsa)))
}

// Typed returns the signature type, 0x04 or 0x06, followed by the public key.
func (k WitnessKey) Typed() []byte {
	if k.mldsa == "" {
		return publicKeyWithType(algCosignature, k.public)
	}
	return append([]byte{algMLDSA44}, k.mldsa...)
}

// String returns name+hash+base64(type || public key).
func (k WitnessKey) String() string { return formatVerifierKey(k.name, k.hash, k.Typed()) }

// Matches reports whether the line has the name and the key hash of this key. It does not verify
// the line.
func (k WitnessKey) Matches(s Signature) bool { return s.Name == k.name && s.KeyHash == k.hash }

// Verify checks that s is the key's cosignature of text, the text of a checkpoint. It returns the
// time in the cosignature. The error wraps ErrSignature.
func (k WitnessKey) Verify(text string, s Signature) (id.Instant, error) {
	if !k.Matches(s) || len(s.Value) != timeSize+k.signatureSize() {
		return 0, fmt.Errorf("verify cosignature: not a line of the key: %w", ErrSignature)
	}
	seconds := binary.BigEndian.Uint64(s.Value)
	if seconds > maxCosigned {
		return 0, fmt.Errorf("verify cosignature: time: %w", ErrSignature)
	}
	if !k.verifiesSignature(seconds, text, s.Value[timeSize:]) {
		return 0, fmt.Errorf("verify cosignature: wrong signature: %w", ErrSignature)
	}
	return id.Instant(seconds * 1000), nil
}

func (k WitnessKey) signatureSize() int {
	if k.mldsa == "" {
		return edkey.SignatureSize
	}
	return mldsa.MLDSA44SignatureSize
}

func (k WitnessKey) verifiesSignature(seconds uint64, text string, signature []byte) bool {
	if k.mldsa == "" {
		return k.public.Verify(ed25519SignedMessage(seconds, text), signature)
	}
	return verifyMLDSASignature(k.name, k.mldsa, seconds, text, signature)
}

// Cosigned verifies the key's line in a note. A note has at most one such line.
func (k WitnessKey) Cosigned(n Note) (id.Instant, error) {
	s := n.findSignature(k.name, k.hash)
	if s == nil {
		return 0, fmt.Errorf("verify cosignature: no line of the key: %w", ErrSignature)
	}
	return k.Verify(n.Text, *s)
}

// ed25519SignedMessage returns the message that an Ed25519 cosignature signs (C2SP
// tlog-cosignature, Ed25519 signed message).
func ed25519SignedMessage(seconds uint64, text string) []byte {
	b := append(make([]byte, 0, 64+len(text)), "cosignature/v1\ntime "...)
	b = append(strconv.AppendUint(b, seconds, 10), '\n')
	return append(b, text...)
}

// ParseSignatures parses signature lines without a note, as a witness returns them: 1 to
// MaxSignatures lines and nothing else. The lines may be of unknown keys, and several may be of one
// key.
func ParseSignatures(lines string) ([]Signature, error) {
	if len(lines) > MaxNote {
		return nil, fmt.Errorf("parse signatures: size: %w", ErrMalformed)
	}
	var all []Signature
	for line := range strings.Lines(lines) {
		// Each line is parsed as a separate note, because the library drops repeated lines.
		n, err := parseUnverifiedNote([]byte("\n\n" + line))
		if err != nil || len(all) == MaxSignatures {
			return nil, fmt.Errorf("parse signatures: line %d: %w", len(all)+1, ErrMalformed)
		}
		all = append(all, n.Signatures...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("parse signatures: no line: %w", ErrMalformed)
	}
	return all, nil
}
