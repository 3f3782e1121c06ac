package edkey

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Holder holds a private key, possibly in another process or in a device. Its methods must be safe
// for concurrent use.
type Holder interface {
	// Public returns the encoding of the public key.
	Public() [PublicSize]byte
	// Sign returns the signature of a message (RFC 8032, Ed25519 without a context and without
	// prehashing). Equal messages MUST have equal signatures.
	Sign(message []byte) ([SignatureSize]byte, error)
}

// Errors of a faulty Holder.
var (
	ErrWrongSignature = errors.New("the key holder returned a signature of another message or key")
	ErrRandomized     = errors.New("the key holder signs equal messages differently")
)

// CheckHolder makes a holder sign a message twice. It returns the signature and a holder that
// verifies each signature before returning it. Errors are those of ParsePublic and of the holder,
// ErrWrongSignature and ErrRandomized.
func CheckHolder(h Holder, message []byte) (checked Holder, signature [SignatureSize]byte, err error) {
	encoded := h.Public()
	public, err := ParsePublic(encoded[:])
	if err != nil {
		return nil, signature, fmt.Errorf("public key: %w", err)
	}
	checked = &checkedHolder{h, public}
	if signature, err = checked.Sign(message); err != nil {
		return nil, signature, err
	}
	again, err := checked.Sign(message)
	if err == nil && again != signature {
		err = ErrRandomized
	}
	return checked, signature, err
}

type checkedHolder struct {
	Holder
	public Public
}

// Sign implements Holder.
func (h *checkedHolder) Sign(message []byte) (signature [SignatureSize]byte, err error) {
	// The holder gets a copy, so that it cannot change the bytes that are verified next.
	signature, err = h.Holder.Sign(bytes.Clone(message))
	if err == nil && !h.public.Verify(message, signature[:]) {
		err = ErrWrongSignature
	}
	return signature, err
}

// Holder returns a Holder of the key in this process. Printing it reveals no private key, and its
// Sign never fails.
func (k Private) Holder() Holder { return &localHolder{func() Private { return k }} }

// localHolder keeps the key in a closure, because fmt prints the values of fields and of pointers.
type localHolder struct{ reveal func() Private }

// Public implements Holder.
func (h *localHolder) Public() [PublicSize]byte { return h.reveal().Public().Bytes() }

// Sign implements Holder.
func (h *localHolder) Sign(message []byte) ([SignatureSize]byte, error) {
	return h.reveal().Sign(message), nil
}

// ParseSeed parses a 32-byte seed in standard base64 with padding. It ignores white space around
// the text. The error never contains the text.
func ParseSeed(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	seed, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(seed) != SeedSize || strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("private key: must be base64 of 32 bytes")
	}
	return seed, nil
}
