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

// FlowTime is for how long a flow may take. A cookie that holds a flow needs no longer life.
const FlowTime = 10 * time.Minute

// maxAuthAge is the age that a proof of the person may have at the provider. It is long, and is asked for
// because a provider that is told an age has to tell auth_time (OpenID Connect Core, section 2).
const maxAuthAge = 7 * 24 * time.Hour

// sealContext tells a sealed flow from other secrets.
const sealContext = "oidc-flow"

// flow is one sign-in under way. The browser holds it, sealed.
type flow struct {
	Provider string    `json:"provider"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"` // of PKCE (RFC 7636)
	Return   string    `json:"return"`   // path of this service
	Fresh    bool      `json:"fresh,omitzero"`
	Ends     time.Time `json:"ends"`
}

// Started is a sign-in that has begun.
type Started struct {
	URL    string // of the provider, for the browser
	Cookie string // MUST come back with the answer; HttpOnly, for FlowTime
}

// Start begins a sign-in at a provider. returnTo is a path of this service, "" for "/".
// fresh asks the provider to let the person prove again to be there. fault.NotFound for an
// unknown provider, fault.Invalid for another kind of path, fault.Unavailable when the
// provider can't be asked.
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

// isOwnPath reports whether a browser takes a text as a path of this service: no other
// host, no scheme, and nothing that browsers repair to one of these.
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

// Finish checks the answer of a provider, which the browser brings in a query, and returns
// the person and the path to return to. The caller MUST end the cookie, also after an error.
// Every refusal is fault.Unauthorized with one text; fault.Unavailable when the provider
// can't be asked.
func (p *Party) Finish(ctx context.Context, provider, cookie string, query url.Values) (Person, string, error) {
	e, err := p.findEndpoint(ctx, provider)
	if err != nil {
		return Person{}, "", err
	}
	var f flow
	err = seal.OpenCookie(p.Sealer, sealContext, cookie, &f)
	if err == nil {
		err = p.checkAnswer(&f, e, provider, query)
	}
	if err != nil {
		return Person{}, "", errRefused(err)
	}
	who, err := p.redeemCode(ctx, e, &f, query.Get("code"))
	if err != nil {
		return Person{}, "", err
	}
	who.Provider = provider
	return who, f.Return, nil
}

func errRefused(cause error) error {
	return fault.Wrap(fault.Unauthorized, "The sign-in failed", cause)
}

// checkAnswer checks the query of an answer against the flow that it claims to end.
func (p *Party) checkAnswer(f *flow, e *endpoint, provider string, query url.Values) error {
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(query[name]) > 1 {
			return fmt.Errorf("%s is there twice", name)
		}
	}
	switch iss := query.Get("iss"); {
	case f.Provider != provider:
		return errors.New("the flow began at another provider")
	case !p.Clock().Before(f.Ends):
		return errors.New("the flow took too long")
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(f.State)) != 1:
		return errors.New("another state")
	case (iss != "" || e.tellsIss) && iss != e.issuer:
		return errors.New("answer of another issuer")
	case query.Has("error"):
		return errors.New("the provider refused")
	case query.Get("code") == "":
		return errors.New("no code")
	}
	return nil
}

// redeemCode exchanges the code for an ID token and checks the token. If the token has no verified address, it asks
// the UserInfo endpoint.
func (p *Party) redeemCode(ctx context.Context, e *endpoint, f *flow, code string) (Person, error) {
	token, err := e.oauth.Exchange(oidc.ClientContext(ctx, p.Client), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, classifyExchange(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Person{}, errRefused(errors.New("no ID token"))
	}
	checked, err := e.verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, errRefused(fmt.Errorf("check ID token: %w", err))
	}
	who, err := readClaims(checked, f, e.oauth.ClientID, p.Clock())
	if err != nil {
		return Person{}, errRefused(fmt.Errorf("check ID token: %w", err))
	}
	if who.NoEmail != nil {
		p.askUserInfo(ctx, e, &who, token)
	}
	return who, nil
}

// classifyExchange tells a refusal of the provider from a provider that can't be asked. The
// cause names no part of the answer, because that may hold a token.
func classifyExchange(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return errUnreachable(errors.New("exchange code: no answer that can be read"))
	}
	if status := refused.Response.StatusCode; status >= 500 || status == 429 {
		return errUnreachable(fmt.Errorf("exchange code: status %d", status))
	}
	return errRefused(fmt.Errorf("exchange code: status %d", refused.Response.StatusCode))
}
