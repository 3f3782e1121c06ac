package tlog

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/edkey"
)

// maxCosigned is the latest time of a cosignature, in seconds since the Unix
// epoch: the end of the year 9999, beyond which RFC 3339 has no spelling. C2SP
// tlog-cosignature lets verifiers refuse times in the future.
const maxCosigned = 253402300799

const timeSize = 8 // of the big-endian seconds before the signature

// WitnessKey is a named Ed25519 public key that cosigns checkpoints (a vkey of
// signature type 0x04). It is comparable; the zero value is no key and verifies
// nothing.
type WitnessKey struct {
	name   string
	hash   KeyHash
	public edkey.Public
}

// NewWitnessKey names a public key; for the name see NewVerifierKey.
func NewWitnessKey(name string, public edkey.Public) (WitnessKey, error) {
	hash, err := keyHash(name, algCosignature, public)
	return WitnessKey{name: name, hash: hash, public: public}, err
}

// ParseWitnessKey reads exactly what String writes. The public key must pass
// edkey.ParsePublic. Keys of other algorithms (0x06, ML-DSA-44) are refused.
func ParseWitnessKey(vkey string) (WitnessKey, error) {
	name, hash, public, err := parseKey(vkey, algCosignature)
	return WitnessKey{name: name, hash: hash, public: public}, err
}

// Name returns the key's name.
func (k WitnessKey) Name() string { return k.name }

// Hash returns the first 4 bytes of SHA-256(name LF 0x04 public key).
func (k WitnessKey) Hash() KeyHash { return k.hash }

// Public returns the key itself. Two keys that differ in the name alone are one
// witness.
func (k WitnessKey) Public() edkey.Public { return k.public }

// String returns name+hash+base64(0x04 || public key).
func (k WitnessKey) String() string { return formatKey(k.name, k.hash, algCosignature, k.public) }

// Made reports whether the line says to be of this key: the same name and key
// hash. Only Verify tells whether it is.
func (k WitnessKey) Made(s Signature) bool { return s.Name == k.name && s.KeyHash == k.hash }

// Verify checks that s is the key's cosignature/v1 of text, the text of a
// checkpoint, and returns when the witness says to have made it. The error wraps
// ErrSignature.
func (k WitnessKey) Verify(text string, s Signature) (id.Instant, error) {
	if !k.Made(s) || len(s.Value) != timeSize+edkey.SignatureSize {
		return 0, fmt.Errorf("verify cosignature: not a line of the key: %w", ErrSignature)
	}
	seconds := binary.BigEndian.Uint64(s.Value)
	if seconds > maxCosigned {
		return 0, fmt.Errorf("verify cosignature: time: %w", ErrSignature)
	}
	if !k.public.Verify(cosigned(seconds, text), s.Value[timeSize:]) {
		return 0, fmt.Errorf("verify cosignature: wrong signature: %w", ErrSignature)
	}
	return id.Instant(seconds * 1000), nil
}

// Cosigned is Verify for the key's line in a note. A note has at most one.
func (k WitnessKey) Cosigned(n Note) (id.Instant, error) {
	s := n.signedBy(k.name, k.hash)
	if s == nil {
		return 0, fmt.Errorf("verify cosignature: no line of the key: %w", ErrSignature)
	}
	return k.Verify(n.Text, *s)
}

// cosigned returns the message under a cosignature (C2SP tlog-cosignature,
// Ed25519 signed message).
func cosigned(seconds uint64, text string) []byte {
	b := append(make([]byte, 0, 64+len(text)), "cosignature/v1\ntime "...)
	b = append(strconv.AppendUint(b, seconds, 10), '\n')
	return append(b, text...)
}

// WitnessSigner is the private half of a WitnessKey. Printing it shows the
// public half. It is safe for concurrent use. Whoever cosigns must keep to what
// a cosignature states: that no larger and no inconsistent checkpoint of the
// origin was ever cosigned (C2SP tlog-witness).
type WitnessSigner struct {
	key  WitnessKey
	sign func(message []byte) [edkey.SignatureSize]byte // see SignerKey
}

// NewWitnessSigner names a private key; for the name see NewVerifierKey.
func NewWitnessSigner(name string, private edkey.Private) (WitnessSigner, error) {
	key, err := NewWitnessKey(name, private.Public())
	if err != nil {
		return WitnessSigner{}, err
	}
	return WitnessSigner{key: key, sign: private.Sign}, nil
}

// Key returns the public half.
func (w WitnessSigner) Key() WitnessKey { return w.key }

// Cosign returns the signature line over the text of a checkpoint. The time is
// cut to seconds; it is not before 1970 or after 9999.
func (w WitnessSigner) Cosign(text string, at id.Instant) Signature {
	seconds := uint64(min(max(at/1000, 0), maxCosigned))
	signature := w.sign(cosigned(seconds, text))
	value := binary.BigEndian.AppendUint64(make([]byte, 0, timeSize+len(signature)), seconds)
	return Signature{Name: w.key.name, KeyHash: w.key.hash, Value: append(value, signature[:]...)}
}

// Format writes the public half for every verb.
func (w WitnessSigner) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, w.key.String()) }

// ParseSignatures reads signature lines without a note, as a witness answers: 1
// to MaxSignatures lines and nothing else. Lines of keys that nobody asked for
// may be among them, and several of one key.
func ParseSignatures(lines string) ([]Signature, error) {
	if len(lines) > MaxNote {
		return nil, fmt.Errorf("parse signatures: size: %w", ErrMalformed)
	}
	var all []Signature
	for rest := lines; rest != "" || all == nil; {
		line, after, isWhole := strings.Cut(rest, "\n")
		sig, ok := parseSignature(line)
		if !ok || !isWhole || len(all) == MaxSignatures {
			return nil, fmt.Errorf("parse signatures: line %d: %w", len(all)+1, ErrMalformed)
		}
		all, rest = append(all, sig), after
	}
	return all, nil
}
