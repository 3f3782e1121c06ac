package signedvote

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// KeyKind is the kind of the service's events that register and retire voter keys.
const KeyKind = "ledger_voter_key"

// The transitions of a voter key.
const (
	Registered = "registered"
	Retired    = "retired"
)

// Registration is the payload of an event of KeyKind that registers a voter key.
type Registration struct {
	AccountID    string     `json:"account_id"`
	Consent      *Assertion `json:"consent"` // by a voter key of the account; nil if there is none
	CredentialID Bytes      `json:"credential_id"`
	Possession   Assertion  `json:"possession"` // by the new credential
	PublicKey    Key        `json:"public_key"`
	RPID         string     `json:"rp_id"`
	Transition   string     `json:"transition"` // Registered
	WebOrigin    string     `json:"web_origin"`
}

// Retirement is the payload of an event of KeyKind that retires a voter key.
type Retirement struct {
	AccountID    string `json:"account_id"`
	CredentialID Bytes  `json:"credential_id"`
	Transition   string `json:"transition"` // Retired
}

// ParseKeyEvent parses the payload of an event of KeyKind, which must be in canonical form. Unless
// it returns an error, exactly one of its results is not nil. The error wraps verify.ErrMalformed.
// No signature is checked.
func ParseKeyEvent(payload jsontext.Value) (*Registration, *Retirement, error) {
	if retired, err := parseExact[Retirement](payload); err == nil && retired.Transition == Retired {
		if err := checkNames(retired.AccountID, retired.CredentialID); err != nil {
			return nil, nil, err
		}
		return nil, &retired, nil
	}
	r, err := parseExact[Registration](payload)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("payload: %w", err)
	case r.Transition != Registered:
		return nil, nil, fmt.Errorf("transition: %w", verify.ErrMalformed)
	}
	if err := r.validate(); err != nil {
		return nil, nil, err
	}
	return &r, nil, nil
}

func checkNames(account string, credential Bytes) error {
	switch {
	case !event.ValidEvent(account):
		return fmt.Errorf("account_id: %w", verify.ErrMalformed)
	case len(credential) == 0 || len(credential) > MaxCredential:
		return fmt.Errorf("credential_id: length: %w", verify.ErrMalformed)
	}
	return nil
}

func (r *Registration) validate() error {
	if err := checkNames(r.AccountID, r.CredentialID); err != nil {
		return err
	}
	if err := r.Possession.Validate(); err != nil {
		return fmt.Errorf("possession: %w", err)
	}
	if r.Consent != nil {
		if err := r.Consent.Validate(); err != nil {
			return fmt.Errorf("consent: %w", err)
		}
		if bytes.Equal(r.Consent.CredentialID, r.CredentialID) {
			return fmt.Errorf("consent by the same credential: %w", verify.ErrMalformed)
		}
	}
	if !ValidParty(r.RPID, r.WebOrigin) {
		return fmt.Errorf("rp_id, web_origin: %w", verify.ErrMalformed)
	}
	return nil
}

// webOrigin is the form of web origins, with the host.
var webOrigin = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^https?://([a-z0-9._-]{1,253})(:[1-9][0-9]{0,4})?$`)
})

// ValidParty reports whether pages of an origin may use passkeys of a relying party: over HTTPS or
// on localhost, and on a host that is rpID or a subdomain of it.
func ValidParty(rpID, origin string) bool {
	m := webOrigin().FindStringSubmatch(origin)
	if m == nil || rpID == "" || m[1] != rpID && !strings.HasSuffix(m[1], "."+rpID) {
		return false
	}
	return strings.HasPrefix(origin, "https://") || m[1] == "localhost"
}

// Credential returns the registered credential.
func (r *Registration) Credential() *Credential {
	return &Credential{ID: r.CredentialID, Key: r.PublicKey, RPID: r.RPID, WebOrigin: r.WebOrigin}
}

// CheckPossession checks that the new credential signed its registration, in an event of the log
// with the given origin that was received at receivedAt.
func (r *Registration) CheckPossession(origin id.Origin, receivedAt id.Instant) error {
	if err := r.check(origin, &r.Possession, r.Credential(), receivedAt); err != nil {
		return fmt.Errorf("possession: %w", err)
	}
	return nil
}

// CheckConsent checks that another credential, which must be a voter key of the same account at the time of the event,
// signed the registration.
func (r *Registration) CheckConsent(origin id.Origin, by *Credential, receivedAt id.Instant) error {
	err := fmt.Errorf("no consent: %w", verify.ErrMismatch)
	if r.Consent != nil {
		err = r.check(origin, r.Consent, by, receivedAt)
	}
	if err != nil {
		return fmt.Errorf("consent: %w", err)
	}
	return nil
}

func (r *Registration) check(origin id.Origin, a *Assertion, by *Credential, receivedAt id.Instant) error {
	text, err := KeyText(origin, r.AccountID, r.CredentialID, r.PublicKey, a.Time)
	if err != nil {
		return err
	}
	return by.Check(text, a, receivedAt)
}
