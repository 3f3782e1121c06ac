package tlog

import (
	"encoding/binary"
	"fmt"
	"io"

	"filippo.io/mldsa"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// WitnessSigner is the private half of a WitnessKey. Printing it shows the
// public half. It is safe for concurrent use. Whoever cosigns must keep to what
// a cosignature states: that no larger and no inconsistent checkpoint of the
// origin was ever cosigned (C2SP tlog-witness).
type WitnessSigner struct {
	key WitnessKey
	// A function and not the key, see SignerKey. It returns nil for what can't be
	// signed: a text that is no checkpoint, by ML-DSA-44.
	sign func(seconds uint64, text string) []byte
}

// NewWitnessSigner names an Ed25519 private key; for the name see NewVerifierKey.
func NewWitnessSigner(name string, private edkey.Private) (WitnessSigner, error) {
	key, err := NewWitnessKey(name, private.Public())
	if err != nil {
		return WitnessSigner{}, err
	}
	return WitnessSigner{key: key, sign: func(seconds uint64, text string) []byte {
		signature := private.Sign(cosigned(seconds, text))
		return signature[:]
	}}, nil
}

// NewMLDSAWitnessSigner names an ML-DSA-44 private key, which is made from a seed of
// 32 bytes (FIPS 204). Its signatures are the deterministic ones.
func NewMLDSAWitnessSigner(name string, seed []byte) (WitnessSigner, error) {
	private, err := mldsa.NewPrivateKey(mldsa.MLDSA44(), seed)
	if err != nil {
		return WitnessSigner{}, fmt.Errorf("witness signer: %w: %w", ErrMalformed, err)
	}
	key := WitnessKey{name: name, mldsa: string(private.PublicKey().Bytes())}
	if key.hash, err = keyHash(name, key.Typed()); err != nil {
		return WitnessSigner{}, err
	}
	return WitnessSigner{key: key, sign: func(seconds uint64, text string) []byte {
		message, ok := cosignedTree(name, seconds, text)
		if !ok {
			return nil
		}
		signature, err := private.SignDeterministic(message, nil)
		if err != nil {
			return nil
		}
		return signature
	}}, nil
}

// Key returns the public half.
func (w WitnessSigner) Key() WitnessKey { return w.key }

// Cosign returns the signature line over the text of a checkpoint. The time is
// cut to seconds; it is not before 1970 or after 9999. The line over another text
// may verify under no key.
func (w WitnessSigner) Cosign(text string, at id.Instant) Signature {
	seconds := uint64(min(max(at/1000, 0), maxCosigned))
	value := binary.BigEndian.AppendUint64(nil, seconds)
	return Signature{Name: w.key.name, KeyHash: w.key.hash, Value: append(value, w.sign(seconds, text)...)}
}

// Format writes the public half for every verb.
func (w WitnessSigner) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, w.key.String()) }
