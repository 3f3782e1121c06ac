package event

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Form is the message that an agent's key signed. The zero value is no form.
type Form uint8

const (
	FormDigest    Form = iota + 1 // the 32 bytes of the event digest
	FormCanonical                 // the canonical JSON without the signature members
)

// ParseForm accepts exactly digest or canonical. The error wraps id.ErrMalformed.
func ParseForm(s string) (Form, error) {
	switch s {
	case "digest":
		return FormDigest, nil
	case "canonical":
		return FormCanonical, nil
	}
	return 0, fmt.Errorf("signature form: %w", id.ErrMalformed)
}

// String returns the wire form, "" for the zero value.
func (f Form) String() string {
	switch f {
	case FormDigest:
		return "digest"
	case FormCanonical:
		return "canonical"
	}
	return ""
}

// Digest returns the event digest: the SHA-256 of APS1, LF, key, LF and signed, which is the
// canonical JSON of the envelope without its signature members.
func Digest(key id.Key, signed []byte) id.Hash { return digestParts(key, signed) }

func digestParts(key id.Key, signed ...[]byte) (sum id.Hash) {
	h := sha256.New()
	var buf [len("APS1\n") + 256 + 1]byte
	h.Write(append(append(append(buf[:0], "APS1\n"...), key...), '\n'))
	for _, part := range signed {
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// splitAtSignature returns Canonical without the signature members. Neither is the first member,
// because action_kind sorts before them, so each is removed with the comma before it.
func (e *Envelope) splitAtSignature() (a, b, c []byte) {
	alg, value := e.signature[0], e.signature[1]
	return e.Canonical[:alg.Start-1], e.Canonical[alg.End : value.Start-1], e.Canonical[value.End:]
}

func (e *Envelope) computeDigest() id.Hash {
	a, b, c := e.splitAtSignature()
	return digestParts(e.KeyID, a, b, c)
}

// Signed returns the canonical JSON without sig_alg and sig_value_b64, in a new slice.
func (e *Envelope) Signed() []byte {
	a, b, c := e.splitAtSignature()
	signed := make([]byte, 0, len(a)+len(b)+len(c))
	return append(append(append(signed, a...), b...), c...)
}

// Verifier verifies signatures of one key by the rule of package edkey. It is an edkey.Public or an
// edkey.Table.
type Verifier interface {
	Verify(message, signature []byte) bool
}

// Verify reports whether a key signed the envelope, and in which form. The caller must check whose
// key it is.
func (e *Envelope) Verify(key Verifier) (Form, bool) {
	if key.Verify(e.Digest[:], e.Signature[:]) {
		return FormDigest, true
	}
	if key.Verify(e.Signed(), e.Signature[:]) {
		return FormCanonical, true
	}
	return 0, false
}

// Sign returns the canonical envelope of unsigned, a JSON object with all members except the two of
// the signature, with key's signature in the digest form. Its errors are those of Parse, but it
// allows any size and names that are reserved for the server.
func Sign(unsigned []byte, key edkey.Private) ([]byte, error) {
	e, err := SignEnvelope(unsigned, key)
	if err != nil {
		return nil, err
	}
	return e.Canonical, nil
}

// SignEnvelope is Sign but returns the parsed envelope.
func SignEnvelope(unsigned []byte, key edkey.Private) (*Envelope, error) {
	return SignBy(unsigned, func(digest []byte) ([edkey.SignatureSize]byte, error) { return key.Sign(digest), nil })
}

// SignBy is SignEnvelope with a key that is held elsewhere: sign gets the 32 bytes of the event
// digest and returns their signature. SignBy wraps its error.
func SignBy(unsigned []byte, sign func(digest []byte) ([edkey.SignatureSize]byte, error)) (*Envelope, error) {
	canonical, list, err := jcs.ParseObject(nil, unsigned, jcs.MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("sign envelope: %w", err)
	}
	m := collectMembers(canonical, list)
	if m.memberValue(sigAlg) != nil || m.memberValue(sigValue) != nil {
		return nil, fmt.Errorf("sign envelope: %w",
			newInvalidError("An envelope to be signed must not have sig_alg or sig_value_b64"))
	}
	if m.memberValue(keyID) == nil {
		return nil, fmt.Errorf("sign envelope: %w", newMissingError(keyID))
	}
	sum := Digest(id.Key(m.decodeTexts()[keyID]), canonical) // Parse rejects an invalid key_id
	sig, err := sign(sum[:])
	if err != nil {
		return nil, fmt.Errorf("sign envelope: %w", err)
	}
	full := append([]byte(nil), canonical[:len(canonical)-1]...)
	full = append(full, `,"sig_alg":"ed25519","sig_value_b64":"`...)
	full = base64.StdEncoding.AppendEncode(full, sig[:])
	full = append(full, `"}`...)
	e, err := Parse(full, Options{MaxBytes: math.MaxInt, Server: true})
	if err != nil {
		return nil, fmt.Errorf("sign envelope: %w", err)
	}
	return e, nil
}
