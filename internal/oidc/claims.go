package oidc

import (
	"crypto/subtle"
	"errors"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// clockSkew is how far a provider's clock may be ahead of the local clock.
const clockSkew = time.Minute

// maxSubject is the length of the longest subject, in bytes (OpenID Connect Core, section 2).
const maxSubject = 255

// claims are the claims of an ID token or a UserInfo response that go-oidc does not check.
type claims struct {
	AuthorizedParty string `json:"azp"`
	Email           string `json:"email"`
	EmailVerified   any    `json:"email_verified"` // a boolean; some providers send a string
	Name            string `json:"name"`
	AuthTime        int64  `json:"auth_time"` // seconds since 1970; 0 if missing
}

// readClaims checks the remaining claims of an ID token and returns the person. The caller has verified signature,
// issuer, audience and expiry.
func readClaims(token *oidc.IDToken, f *flow, clientID string, now time.Time) (Person, error) {
	var c claims
	if err := token.Claims(&c); err != nil {
		return Person{}, errors.New("claims have unexpected types")
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(f.Nonce)) != 1:
		return Person{}, errors.New("nonce does not match")
	case c.AuthorizedParty != "" && c.AuthorizedParty != clientID,
		c.AuthorizedParty == "" && len(token.Audience) > 1:
		return Person{}, errors.New("issued for another party")
	case token.Subject == "" || len(token.Subject) > maxSubject:
		return Person{}, errors.New("subject is empty or too long")
	case token.IssuedAt.IsZero() || token.IssuedAt.After(now.Add(clockSkew)):
		return Person{}, errors.New("issued in the future")
	case f.Fresh && time.Unix(c.AuthTime, 0).Before(f.Ends.Add(-FlowTime-clockSkew)):
		return Person{}, errors.New("the user did not authenticate again")
	}
	who := Person{Issuer: token.Issuer, Subject: token.Subject, Name: c.Name}
	if c.AuthTime > 0 { // without it, the time of the authentication is unknown
		who.AuthenticatedAt = time.Unix(c.AuthTime, 0)
	}
	who.takeAddress("the ID token", c.Email, c.isVerified())
	return who, nil
}

func (c *claims) isVerified() bool { return c.EmailVerified == true || c.EmailVerified == "true" }
