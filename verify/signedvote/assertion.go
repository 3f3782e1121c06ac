package signedvote

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/verify"
)

// Bounds of an assertion in bytes.
const (
	authenticatorDataLen = 37
	MaxClientData        = 2048
	MaxCredential        = 1023
	MaxSignature         = 512
)

// Assertion is a passkey's signature over a text of this package.
type Assertion struct {
	AuthenticatorData Bytes  `json:"authenticator_data"`
	ClientDataJSON    Bytes  `json:"client_data_json"`
	CredentialID      Bytes  `json:"credential_id"`
	Signature         Bytes  `json:"signature"`
	Time              string `json:"time"` // the bucket in the text
}

// ParseAssertion parses the canonical form (RFC 8785) of an assertion with exactly these members.
// Its error wraps verify.ErrMalformed.
func ParseAssertion(text []byte) (Assertion, error) {
	a, err := parseExact[Assertion](text)
	if err == nil {
		err = a.Validate()
	}
	if err != nil {
		return Assertion{}, fmt.Errorf("assertion: %w", err)
	}
	return a, nil
}

// Validate checks the bounds and the form of the time bucket. Its error wraps verify.ErrMalformed.
func (a *Assertion) Validate() error {
	within := func(b Bytes, most int) bool { return len(b) > 0 && len(b) <= most }
	switch _, isBucket := parseBucket(a.Time); {
	case len(a.AuthenticatorData) != authenticatorDataLen:
		return fmt.Errorf("authenticator_data: length: %w", verify.ErrMalformed)
	case !within(a.ClientDataJSON, MaxClientData):
		return fmt.Errorf("client_data_json: length: %w", verify.ErrMalformed)
	case !within(a.CredentialID, MaxCredential):
		return fmt.Errorf("credential_id: length: %w", verify.ErrMalformed)
	case !within(a.Signature, MaxSignature):
		return fmt.Errorf("signature: length: %w", verify.ErrMalformed)
	case !isBucket:
		return fmt.Errorf("time: %w", verify.ErrMalformed)
	}
	return nil
}

// Counter returns the signature counter, or 0 if the assertion is invalid. Check ignores it: a
// passkey that is synchronized between devices reports 0, so only the service, which has seen
// earlier assertions, can compare it.
func (a *Assertion) Counter() uint32 {
	if len(a.AuthenticatorData) != authenticatorDataLen {
		return 0
	}
	return binary.BigEndian.Uint32(a.AuthenticatorData[33:])
}

// Backup returns the authenticator's flags that the passkey may be backed up, and that it is.
func (a *Assertion) Backup() (eligible, backedUp bool) {
	if len(a.AuthenticatorData) != authenticatorDataLen {
		return false, false
	}
	return a.AuthenticatorData[32]&flagEligible != 0, a.AuthenticatorData[32]&flagBackedUp != 0
}

// The flags of authenticator data (Web Authentication, section 6.1).
const (
	flagPresent  = 0x01
	flagVerified = 0x04
	flagEligible = 0x08
	flagBackedUp = 0x10
	flagsKnown   = flagPresent | flagVerified | flagEligible | flagBackedUp
)

// Credential is a passkey, as the event that registered it as a voter key states it.
type Credential struct {
	ID        Bytes
	Key       Key
	RPID      string
	WebOrigin string
}

// Check checks that the credential made an assertion over a text with the assertion's time bucket,
// and that an event with it may have been received at receivedAt. Errors name the step and wrap
// verify.ErrMalformed, verify.ErrMismatch or tlog.ErrSignature.
func (c *Credential) Check(text []byte, a *Assertion, receivedAt id.Instant) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if !bytes.Equal(a.CredentialID, c.ID) {
		return fmt.Errorf("credential_id: %w", verify.ErrMismatch)
	}
	if !Fits(a.Time, receivedAt) {
		return fmt.Errorf("time and received_at: %w", verify.ErrMismatch)
	}
	if err := c.checkClientData(a.ClientDataJSON, Challenge(text)); err != nil {
		return fmt.Errorf("client_data_json: %w", err)
	}
	party := sha256.Sum256([]byte(c.RPID))
	if !bytes.Equal(a.AuthenticatorData[:32], party[:]) {
		return fmt.Errorf("authenticator_data: rp_id: %w", verify.ErrMismatch)
	}
	flags := a.AuthenticatorData[32]
	if flags&^flagsKnown != 0 || flags&flagPresent == 0 || flags&flagVerified == 0 ||
		flags&flagBackedUp != 0 && flags&flagEligible == 0 {
		return fmt.Errorf("authenticator_data: flags: %w", verify.ErrMismatch)
	}
	client := sha256.Sum256(a.ClientDataJSON)
	message := append(append(make([]byte, 0, authenticatorDataLen+len(client)), a.AuthenticatorData...), client[:]...)
	if err := c.Key.verify(message, a.Signature); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	return nil
}

// checkClientData checks what the browser stated about the page and the challenge.
func (c *Credential) checkClientData(text []byte, challenge id.Hash) error {
	canonical, _, err := jcs.ParseObject(nil, text, jcs.MaxDepth)
	if err != nil {
		return fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	var client struct {
		Type        jsontext.Value `json:"type"`
		Challenge   jsontext.Value `json:"challenge"`
		Origin      jsontext.Value `json:"origin"`
		CrossOrigin jsontext.Value `json:"crossOrigin"`
		TopOrigin   jsontext.Value `json:"topOrigin"`
	}
	if err := json.Unmarshal(canonical, &client); err != nil {
		return fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	for _, m := range []struct {
		name, want string
		value      jsontext.Value
	}{
		{"type", "webauthn.get", client.Type},
		{"challenge", Bytes(challenge[:]).String(), client.Challenge},
		{"origin", c.WebOrigin, client.Origin},
	} {
		// Both are canonical, so equal values have equal texts.
		if string(m.value) != string(jcs.AppendString(nil, m.want)) {
			return fmt.Errorf("%s: %w", m.name, verify.ErrMismatch)
		}
	}
	if client.CrossOrigin != nil && string(client.CrossOrigin) != "false" || client.TopOrigin != nil {
		return fmt.Errorf("crossOrigin, topOrigin: %w", verify.ErrMismatch)
	}
	return nil
}
