package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Identity names an agent and its key.
type Identity struct {
	Organization id.Organization
	Agent        id.Agent
	Key          id.Key
}

// Signer completes and signs the events of one agent with one Ed25519 key.
// Printing it shows no private key.
type Signer struct {
	who     Identity
	private *edkey.Private // a pointer, so that fmt does not print the key
}

// NewSigner returns the signer of a 32-byte Ed25519 seed (RFC 8032 section 5.1.5). The
// seed is copied. Errors wrap id.ErrMalformed for a malformed name and edkey.ErrLength
// for the seed.
func NewSigner(who Identity, seed []byte) (*Signer, error) {
	switch {
	case who.Organization == id.Organization{}:
		return nil, errors.New("new signer: no organization")
	case !event.ValidAgent(string(who.Agent)):
		return nil, fmt.Errorf("new signer: agent id: %w", id.ErrMalformed)
	case !event.ValidKey(string(who.Key)):
		return nil, fmt.Errorf("new signer: key id: %w", id.ErrMalformed)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("new signer: seed: %w", err)
	}
	return &Signer{who: who, private: &private}, nil
}

// ParseSigner is NewSigner for a seed in standard base64, the form in which the service
// and aps keygen give private keys. White space around it is ignored. Errors are those of
// ParseSeed and NewSigner.
func ParseSigner(who Identity, seedB64 string) (*Signer, error) {
	seed, err := ParseSeed(seedB64)
	if err != nil {
		return nil, fmt.Errorf("new signer: %w", err)
	}
	return NewSigner(who, seed)
}

// ParseSeed reads a 32-byte seed in standard base64 with padding, white space
// around it ignored. The error never holds the text.
func ParseSeed(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	seed, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(seed) != edkey.SeedSize || strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("private key: must be base64 of 32 bytes")
	}
	return seed, nil
}

// Identity returns the agent and key of the signer.
func (s *Signer) Identity() Identity { return s.who }

// Public returns the public key.
func (s *Signer) Public() [32]byte { return s.private.Public().Bytes() }

// Format names agent and key, for every verb.
func (s Signer) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "signer of %s with %s", s.who.Agent, s.who.Key)
}

// Sign returns the signed canonical envelope of a complete event, in the given form; see
// Complete. Ed25519 is deterministic: the same event gives the same bytes. A reserved
// event_id is signed too, because events that were stored before the rule can be sent
// again. Errors are those of event.Sign.
func (s *Signer) Sign(complete []byte, form event.Form) ([]byte, error) {
	switch form {
	case event.FormDigest:
		return event.Sign(complete, *s.private)
	case event.FormCanonical:
		return s.signCanonical(complete)
	}
	return nil, fmt.Errorf("sign envelope: form: %w", id.ErrMalformed)
}

// signCanonical lets event.Sign check the event, and replaces the signature.
func (s *Signer) signCanonical(complete []byte) ([]byte, error) {
	digestForm, err := event.Sign(complete, *s.private)
	if err != nil {
		return nil, err
	}
	message, err := jcs.Canonicalize(complete, jcs.MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("sign envelope: %w", err)
	}
	e, err := event.Parse(digestForm, event.Options{MaxBytes: len(digestForm), Server: true})
	if err != nil {
		return nil, fmt.Errorf("sign envelope: %w", err)
	}
	signature := s.private.Sign(message)
	value := base64.StdEncoding.EncodeToString(signature[:])
	return []byte(strings.Replace(string(e.Canonical), `"sig_value_b64":"`+e.SignatureB64+`"`,
		`"sig_value_b64":"`+value+`"`, 1)), nil
}

// Proof returns proof_b64, with which the key is registered for the signer's
// agent; see ProveKey.
func (s *Signer) Proof() string { return signKeyProof(s.who, *s.private) }

// ProveKey returns proof_b64, with which the key of a 32-byte Ed25519 seed is
// registered for an agent: its signature of
//
//	APS1-KEY LF organization_id LF agent_id LF key_id LF public_key_b64 LF
//
// A proof without who.Key is valid only for a registration that leaves the key id to the
// service.
func ProveKey(who Identity, seed []byte) (string, error) {
	if who.Key != "" {
		s, err := NewSigner(who, seed)
		if err != nil {
			return "", err
		}
		return s.Proof(), nil
	}
	switch {
	case who.Organization == id.Organization{}:
		return "", errors.New("prove key: no organization")
	case !event.ValidAgent(string(who.Agent)):
		return "", fmt.Errorf("prove key: agent id: %w", id.ErrMalformed)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return "", fmt.Errorf("prove key: seed: %w", err)
	}
	return signKeyProof(who, private), nil
}

func signKeyProof(who Identity, private edkey.Private) string {
	message := fmt.Appendf(nil, "APS1-KEY\n%s\n%s\n%s\n%s\n", who.Organization, who.Agent, who.Key, private.Public())
	signature := private.Sign(message)
	return base64.StdEncoding.EncodeToString(signature[:])
}

// Secret returns 32 bytes that only a holder of the private key can compute: HMAC-SHA256
// of label, a zero byte and data, keyed by the seed. The same arguments give the same
// bytes. Use it for identifiers and salts that are derived from content, because a plain
// hash would let others guess the content. label MUST NOT hold a zero byte.
func (s *Signer) Secret(label string, data []byte) (secret [32]byte) {
	seed := s.private.Seed()
	h := hmac.New(sha256.New, seed[:])
	h.Write([]byte(label))
	h.Write([]byte{0})
	h.Write(data)
	h.Sum(secret[:0])
	return secret
}
