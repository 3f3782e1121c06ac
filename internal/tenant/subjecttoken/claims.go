package subjecttoken

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
)

// claims are the claims of a token that are compared.
type claims struct {
	Issuer   string         `json:"iss"`
	Subject  string         `json:"sub"`
	Audience jsontext.Value `json:"aud"` // a text or a list of texts
	Expires  *float64       `json:"exp"` // seconds since 1970
	NotFirst float64        `json:"nbf"`
	IssuedAt float64        `json:"iat"`
	Actor    *actor         `json:"act"`
}

// actor is the claim act. The outermost one is the current actor (RFC 8693 section 4.1).
type actor struct {
	Issuer  string `json:"iss"`
	Subject string `json:"sub"`
	Before  *actor `json:"act"`
}

// parseClaims returns the claims of a token for an audience of the issuer that is valid now.
func parseClaims(payload []byte, of Issuer, now time.Time) (c claims, err error) {
	if json.Unmarshal(payload, &c) != nil {
		return c, errors.New("claims have unexpected types")
	}
	at, skew := float64(now.UnixMilli())/1000, clockSkew.Seconds()
	switch {
	case c.Issuer != of.URL:
		return c, errors.New("issued by another issuer")
	case !slices.Contains(c.audiences(), of.Audience):
		return c, errors.New("issued for another audience")
	case c.Expires == nil || math.IsNaN(*c.Expires) || at >= *c.Expires+skew:
		return c, errors.New("expired")
	case at < c.NotFirst-skew, at < c.IssuedAt-skew:
		return c, errors.New("not valid yet")
	}
	return c, nil
}

// check compares the claims with what an event states.
func (c *claims) check(stated *event.OnBehalfOf) error {
	switch {
	case c.Issuer != stated.Issuer:
		return errors.New("issued by another issuer")
	case c.Subject == "" || c.Subject != stated.Subject:
		return errors.New("another subject")
	case !slices.Equal(c.actors(), statedActors(stated)):
		return errors.New("other actors")
	}
	return nil
}

func (c *claims) audiences() (all []string) {
	var one string
	if json.Unmarshal(c.Audience, &one) == nil {
		return []string{one}
	}
	if json.Unmarshal(c.Audience, &all) != nil {
		return nil
	}
	return all
}

// actors returns the chain of act from the first actor to the current one, as on_behalf_of has it. A chain that is longer than
// any stated one is cut, so that it equals none.
func (c *claims) actors() (all []event.Actor) {
	for a := c.Actor; a != nil && len(all) <= maxNesting; a = a.Before {
		all = append(all, event.Actor{Issuer: orIssuer(a.Issuer, c.Issuer), Subject: a.Subject})
	}
	slices.Reverse(all)
	return all
}

func statedActors(o *event.OnBehalfOf) (all []event.Actor) {
	for _, a := range o.Actors {
		all = append(all, event.Actor{Issuer: orIssuer(a.Issuer, o.Issuer), Subject: a.Subject})
	}
	return all
}

func orIssuer(issuer, other string) string {
	if issuer == "" {
		return other
	}
	return issuer
}
