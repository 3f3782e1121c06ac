package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/agentledger/agentledger/fault"
)

// Messages for a person whose sign-in has no verified address.
const (
	noAddress         = "The provider returned no e-mail address: it has to release email and email_verified to this service"
	unverifiedAddress = "The provider has not verified your e-mail address"
	addressUnknown    = "The provider could not be reached for your e-mail address"
)

func errNoAddress(message, cause string) error {
	return &fault.Error{Kind: fault.Forbidden, Code: "no_verified_address", Message: message, Err: errors.New(cause)}
}

// takeAddress sets the address of the person if it is verified, or else the reason why there is none.
func (who *Person) takeAddress(source, email string, verified bool) {
	switch {
	case email == "":
		who.NoEmail = errNoAddress(noAddress, source+" has no email")
	case !verified:
		who.NoEmail = errNoAddress(unverifiedAddress, source+" has an email without email_verified")
	default:
		who.Email, who.NoEmail = email, nil
	}
}

// readUserInfo reads the address of a person from the UserInfo endpoint if the ID token has no verified one, which is
// usual for the code flow (OpenID Connect Core, section 5.4). The sign-in does not fail without a response, because a
// person who is linked with an account needs no address.
func (p *Party) readUserInfo(ctx context.Context, e *endpoint, who *Person, token *oauth2.Token) {
	if e.provider.UserInfoEndpoint() == "" {
		return // NoEmail keeps the reason of the ID token
	}
	info, err := e.provider.UserInfo(oidc.ClientContext(ctx, p.Client), oauth2.StaticTokenSource(token))
	if err != nil {
		who.NoEmail = errNoAddress(addressUnknown, "UserInfo: "+failureReason(err))
		return
	}
	// A response about another subject must not be used (section 5.3.2).
	if subtle.ConstantTimeCompare([]byte(info.Subject), []byte(who.Subject)) != 1 {
		who.NoEmail = errNoAddress(addressUnknown, "UserInfo: the response has a different sub than the ID token")
		return
	}
	var c claims
	if err := info.Claims(&c); err != nil {
		who.NoEmail = errNoAddress(addressUnknown, "UserInfo: claims have unexpected types")
		return
	}
	if who.Name == "" {
		who.Name = c.Name
	}
	who.takeAddress("UserInfo", c.Email, c.isVerified())
}

// statusText matches the status at the beginning of the library's errors about responses.
var statusText = regexp.MustCompile(`^[1-5][0-9]{2} [A-Za-z ]{0,40}`)

// failureReason returns why UserInfo has no usable response. It leaves out what the library quotes from the body,
// which may contain personal data.
func failureReason(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return "no response: " + failed.Err.Error()
	}
	if status := statusText.FindString(err.Error()); status != "" {
		return "status " + strings.TrimSpace(status)
	}
	return "no usable response"
}
