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
)

// Identity names an agent and its key.
type Identity struct {
	Organization id.Organization
	Agent        id.Agent
	Key          id.Key
}

// Signer completes and signs the events of one agent with one Ed25519 key. Printing it never prints
// the private key.
type Signer struct {
	who    Identity
	key    edkey.Holder
	events EventHolder     // nil if the key holder signs digests without seeing the event
	secret func() [32]byte // Secret derives from its result; a function, because fmt prints fields
}

// NewSigner returns the signer of a 32-byte Ed25519 seed (RFC 8032 section 5.1.5). It copies the
// seed. Errors wrap id.ErrMalformed for a malformed name and edkey.ErrLength for the seed.
func NewSigner(who Identity, seed []byte) (*Signer, error) {
	if err := who.check(); err != nil {
		return nil, fmt.Errorf("new signer: %w", err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("new signer: seed: %w", err)
	}
	return &Signer{who: who, key: private.Holder(), secret: private.Seed}, nil
}

// EventHolder is an edkey.Holder that receives whole events and computes their digests itself, so
// that it knows what it signs. For events, NewKeySigner prefers SignEvent to Sign.
type EventHolder interface {
	edkey.Holder
	// SignEvent returns the signature of an event without its signature members, in the given form.
	SignEvent(unsigned []byte, form event.Form) ([edkey.SignatureSize]byte, error)
}

// secretMessage is signed for Signer.Secret and for nothing else.
const secretMessage = "APS1-SECRET\n"

// NewKeySigner returns the signer of a key that is held elsewhere. It requests two signatures from
// the holder, and checks each signature before using it. Errors are those of NewSigner and of
// edkey.CheckHolder. A holder with randomized signatures is rejected, because identifiers are
// derived from a signature: a retry would create another event.
func NewKeySigner(who Identity, holder edkey.Holder) (*Signer, error) {
	if err := who.check(); err != nil {
		return nil, fmt.Errorf("new signer: %w", err)
	}
	checked, signature, err := edkey.CheckHolder(holder, []byte(secretMessage))
	if err != nil {
		return nil, fmt.Errorf("new signer: %w", err)
	}
	secret := sha256.Sum256(signature[:])
	events, _ := holder.(EventHolder)
	return &Signer{who: who, key: checked, events: events, secret: func() [32]byte { return secret }}, nil
}

// check rejects names that no event can have.
func (w Identity) check() error {
	switch {
	case w.Organization == id.Organization{}:
		return errors.New("no organization")
	case !event.ValidAgent(string(w.Agent)):
		return fmt.Errorf("agent id: %w", id.ErrMalformed)
	case !event.ValidKey(string(w.Key)):
		return fmt.Errorf("key id: %w", id.ErrMalformed)
	}
	return nil
}

// ParseSigner is NewSigner for a seed in standard base64, the form in which the service and aps
// keygen output private keys. It ignores surrounding white space. Errors are those of
// edkey.ParseSeed and NewSigner.
func ParseSigner(who Identity, seedB64 string) (*Signer, error) {
	seed, err := edkey.ParseSeed(seedB64)
	if err != nil {
		return nil, fmt.Errorf("new signer: %w", err)
	}
	return NewSigner(who, seed)
}

// Identity returns the agent and key of the signer.
func (s *Signer) Identity() Identity { return s.who }

// Public returns the public key.
func (s *Signer) Public() [32]byte { return s.key.Public() }

// Format writes the agent and the key ID for every verb.
func (s Signer) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "signer of %s with %s", s.who.Agent, s.who.Key)
}

// Sign returns the signed canonical envelope of a complete event, in the given form; see Complete.
// Ed25519 is deterministic: equal events give equal bytes. Sign accepts a reserved event_id,
// because events that were stored before the rule existed can be sent again. Errors are those of
// event.Sign and of the key.
func (s *Signer) Sign(complete []byte, form event.Form) ([]byte, error) {
	switch {
	case form != event.FormDigest && form != event.FormCanonical:
		return nil, fmt.Errorf("sign envelope: form: %w", id.ErrMalformed)
	case form == event.FormCanonical || s.events != nil:
		return s.signWhole(complete, form)
	}
	e, err := event.SignBy(complete, s.key.Sign)
	if err != nil {
		return nil, err
	}
	return e.Canonical, nil
}

// signWhole makes event.SignBy check the event, and replaces the signature by one over more than
// the digest.
func (s *Signer) signWhole(complete []byte, form event.Form) ([]byte, error) {
	none := func([]byte) (signature [edkey.SignatureSize]byte, err error) { return signature, nil }
	e, err := event.SignBy(complete, none)
	if err != nil {
		return nil, err
	}
	signature, err := s.signParsed(e, form)
	if err != nil {
		return nil, fmt.Errorf("sign envelope: %w", err)
	}
	value := base64.StdEncoding.EncodeToString(signature[:])
	return []byte(strings.Replace(string(e.Canonical), `"sig_value_b64":"`+e.SignatureB64+`"`,
		`"sig_value_b64":"`+value+`"`, 1)), nil
}

// signParsed returns the signature of a parsed event, and verifies it if the key is held elsewhere.
func (s *Signer) signParsed(e *event.Envelope, form event.Form) ([edkey.SignatureSize]byte, error) {
	unsigned := e.Signed()
	if s.events == nil {
		return s.key.Sign(unsigned)
	}
	signature, err := s.events.SignEvent(unsigned, form)
	if err != nil {
		return signature, err
	}
	message := unsigned
	if form == event.FormDigest {
		message = e.Digest[:]
	}
	encoded := s.key.Public()
	if public, err := edkey.ParsePublic(encoded[:]); err != nil || !public.Verify(message, signature[:]) {
		return signature, edkey.ErrWrongSignature
	}
	return signature, nil
}

// Proof returns proof_b64, which is needed to register the key for the signer's agent; see
// ProveKey. Errors are those of the key.
func (s *Signer) Proof() (string, error) { return signKeyProof(s.who, s.key) }

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
		return s.Proof()
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
	return signKeyProof(who, private.Holder())
}

func signKeyProof(who Identity, key edkey.Holder) (string, error) {
	encoded := key.Public()
	public := base64.StdEncoding.EncodeToString(encoded[:])
	message := fmt.Appendf(nil, "APS1-KEY\n%s\n%s\n%s\n%s\n", who.Organization, who.Agent, who.Key, public)
	signature, err := key.Sign(message)
	if err != nil {
		return "", fmt.Errorf("prove key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(signature[:]), nil
}

// Secret returns 32 bytes that only a holder of the private key can compute: HMAC-SHA256 of label,
// a zero byte and data, keyed by the seed, or by a signature if the seed is held elsewhere. Equal
// arguments give equal bytes. Use it for identifiers and salts that are derived from content,
// because a plain hash would let others guess the content. label MUST NOT contain a zero byte.
func (s *Signer) Secret(label string, data []byte) (secret [32]byte) {
	seed := s.secret()
	h := hmac.New(sha256.New, seed[:])
	h.Write([]byte(label))
	h.Write([]byte{0})
	h.Write(data)
	h.Sum(secret[:0])
	return secret
}
