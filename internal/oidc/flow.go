package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/seal"
)

// FlowTime is how long a flow may take. A cookie that contains a flow needs no longer lifetime.
const FlowTime = 10 * time.Minute

// maxAuthAge is the accepted age of the user's authentication at the provider. It is long, and is sent only because a
// provider that gets a max_age must return auth_time (OpenID Connect Core, section 2).
const maxAuthAge = 7 * 24 * time.Hour

// sealContext distinguishes a sealed flow from other sealed values.
const sealContext = "oidc-flow"

// flow is a sign-in in progress. The browser stores it in a sealed cookie.
type flow struct {
	Provider string    `json:"provider"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"` // of PKCE (RFC 7636)
	Return   string    `json:"return"`   // path of this service
	Fresh    bool      `json:"fresh,omitzero"`
	Ends     time.Time `json:"ends"`
}

// Started is a sign-in that was started.
type Started struct {
	URL    string // of the provider, for the browser
	Cookie string // must be sent back with the response; HttpOnly, valid for FlowTime
}

// Start starts a sign-in at a provider. returnTo is a path of this service; if it is "", "/" is used. If fresh is
// true, the provider must authenticate the user again. It returns fault.NotFound if the provider is unknown,
// fault.Invalid if returnTo is not a path of this service, and fault.Unavailable if the provider cannot be reached.
func (p *Party) Start(ctx context.Context, provider, returnTo string, fresh bool) (Started, error) {
	e, err := p.findEndpoint(ctx, provider)
	if err != nil {
		return Started{}, err
	}
	if returnTo == "" {
		returnTo = "/"
	}
	if !isOwnPath(returnTo) {
		return Started{}, fault.New(fault.Invalid, "return must be a path of this service")
	}
	f := flow{Provider: provider, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Return: returnTo, Fresh: fresh, Ends: p.Clock().Add(FlowTime)}
	cookie, err := seal.Cookie(p.Sealer, sealContext, f)
	if err != nil {
		return Started{}, fmt.Errorf("seal sign-in: %w", err)
	}
	age := maxAuthAge
	if fresh {
		age = 0
	}
	return Started{Cookie: cookie, URL: e.oauth.AuthCodeURL(f.State, oidc.Nonce(f.Nonce),
		oauth2.S256ChallengeOption(f.Verifier),
		oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(age.Seconds()))))}, nil
}

// maxReturn is the length of the longest path to return to, in bytes.
const maxReturn = 1024

// isOwnPath reports whether a browser interprets a text as a path of this service: it has no host, no scheme, and
// nothing that browsers would normalize to one.
func isOwnPath(text string) bool {
	if len(text) > maxReturn || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") {
		return false
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil
}

// Finish checks the response of a provider, which the browser sends as a query, and returns the person and the path
// to return to. The caller must delete the cookie, even if there is an error. It returns fault.Unauthorized with the
// same text for every rejection, and fault.Unavailable if the provider cannot be reached.
func (p *Party) Finish(ctx context.Context, provider, cookie string, query url.Values) (Person, string, error) {
	e, err := p.findEndpoint(ctx, provider)
	if err != nil {
		return Person{}, "", err
	}
	var f flow
	err = seal.OpenCookie(p.Sealer, sealContext, cookie, &f)
	if err == nil {
		err = p.checkResponse(&f, e, provider, query)
	}
	if err != nil {
		return Person{}, "", errRejected(err)
	}
	who, err := p.redeemCode(ctx, e, &f, query.Get("code"))
	if err != nil {
		return Person{}, "", err
	}
	who.Provider = provider
	return who, f.Return, nil
}

func errRejected(cause error) error {
	return fault.Wrap(fault.Unauthorized, "The sign-in failed", cause)
}

// checkResponse checks the query of a response against the flow of the cookie.
func (p *Party) checkResponse(f *flow, e *endpoint, provider string, query url.Values) error {
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(query[name]) > 1 {
			return fmt.Errorf("%s appears twice", name)
		}
	}
	switch iss := query.Get("iss"); {
	case f.Provider != provider:
		return errors.New("the flow was started at another provider")
	case !p.Clock().Before(f.Ends):
		return errors.New("the flow took too long")
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(f.State)) != 1:
		return errors.New("state does not match")
	case (iss != "" || e.sendsIssuer) && iss != e.issuer:
		return errors.New("response of another issuer")
	case query.Has("error"):
		return errors.New("the provider returned an error")
	case query.Get("code") == "":
		return errors.New("code is missing")
	}
	return nil
}

// redeemCode exchanges the code for an ID token and checks the token. If the token has no verified address, it calls
// the UserInfo endpoint.
func (p *Party) redeemCode(ctx context.Context, e *endpoint, f *flow, code string) (Person, error) {
	token, err := e.oauth.Exchange(oidc.ClientContext(ctx, p.Client), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, classifyExchange(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Person{}, errRejected(errors.New("ID token is missing"))
	}
	checked, err := e.verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, errRejected(fmt.Errorf("check ID token: %w", err))
	}
	who, err := readClaims(checked, f, e.oauth.ClientID, p.Clock())
	if err != nil {
		return Person{}, errRejected(fmt.Errorf("check ID token: %w", err))
	}
	if who.NoEmail != nil {
		p.readUserInfo(ctx, e, &who, token)
	}
	return who, nil
}

// classifyExchange distinguishes a rejection by the provider from a provider that is unavailable. The cause contains
// no part of the response, because that may contain a token.
func classifyExchange(err error) error {
	rejected, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return errUnreachable(errors.New("exchange code: no readable response"))
	}
	if status := rejected.Response.StatusCode; status >= 500 || status == 429 {
		return errUnreachable(fmt.Errorf("exchange code: status %d", status))
	}
	return errRejected(fmt.Errorf("exchange code: status %d", rejected.Response.StatusCode))
}
