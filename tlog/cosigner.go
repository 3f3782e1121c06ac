package tlog

import (
	"encoding/binary"
	"fmt"
	"io"

	"filippo.io/mldsa"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// WitnessSigner is the private half of a WitnessKey. Printing it prints the public half. It is safe
// for concurrent use. A cosignature states that its key never cosigned a larger or an inconsistent
// checkpoint of the origin (C2SP tlog-witness); callers MUST ensure that.
type WitnessSigner struct {
	key WitnessKey
	// A function instead of the key, see SignerKey. With ML-DSA-44 it returns nil for a
	// text that is not a checkpoint.
	sign func(seconds uint64, text string) []byte
}

// NewWitnessSigner names an Ed25519 private key. The name follows the rules of NewVerifierKey.
func NewWitnessSigner(name string, private edkey.Private) (WitnessSigner, error) {
	key, err := NewWitnessKey(name, private.Public())
	if err != nil {
		return WitnessSigner{}, err
	}
	return WitnessSigner{key: key, sign: func(seconds uint64, text string) []byte {
		signature := private.Sign(ed25519SignedMessage(seconds, text))
		return signature[:]
	}}, nil
}

// NewMLDSAWitnessSigner names the ML-DSA-44 private key of a 32-byte seed (FIPS 204). Its
// signatures are deterministic.
func NewMLDSAWitnessSigner(name string, seed []byte) (WitnessSigner, error) {
	private, err := mldsa.NewPrivateKey(mldsa.MLDSA44(), seed)
	if err != nil {
		return WitnessSigner{}, fmt.Errorf("witness signer: %w: %w", ErrMalformed, err)
	}
	key := WitnessKey{name: name, mldsa: string(private.PublicKey().Bytes())}
	if key.hash, err = computeKeyHash(name, key.Typed()); err != nil {
		return WitnessSigner{}, err
	}
	return WitnessSigner{key: key, sign: func(seconds uint64, text string) []byte {
		message, ok := mldsaSignedMessage(name, seconds, text)
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

// Cosign returns the signature line over the text of a checkpoint. The time is truncated to seconds
// and limited to the years 1970 to 9999. A line over any other text need not verify.
func (w WitnessSigner) Cosign(text string, at id.Instant) Signature {
	seconds := uint64(min(max(at/1000, 0), maxCosigned))
	value := binary.BigEndian.AppendUint64(nil, seconds)
	return Signature{Name: w.key.name, KeyHash: w.key.hash, Value: append(value, w.sign(seconds, text)...)}
}

// Format writes the public half for every verb.
func (w WitnessSigner) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, w.key.String()) }
