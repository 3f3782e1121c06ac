// Package oidc signs users in with OpenID Connect: the authorization code flow with PKCE, at providers that the
// operator has configured. It hides discovery, key rotation and the state of a flow from callers, who call Start and
// Finish.
//
// Invariants:
//
//   - A flow ends in the browser in which it was started. State, nonce and PKCE verifier are in a sealed cookie that
//     only this service can open, for ten minutes and for one provider.
//   - An ID token is accepted only if its signature, issuer, audience, authorized party, times and nonce are valid.
//     Only asymmetric algorithms are accepted.
//   - A response of another issuer is rejected (RFC 9207), so one provider cannot redeem the code of another (mix-up
//     attack).
//   - An e-mail address is unverified unless the ID token, or the UserInfo response for the same subject, contains
//     email_verified. UserInfo is requested only if the ID token has no verified address.
//   - If the provider does not report when the user authenticated, AuthenticatedAt is zero and proves nothing.
//   - A fresh sign-in succeeds only if the provider reports that the user authenticated after its start.
//   - The path to return to is a path of this service.
//   - All rejections have the same text. The error for the log contains the cause, but neither a code nor a token.
//   - The response of a provider is at most 1 MiB and must arrive within ten seconds.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/seal"
)

// Provider is an identity provider, as the operator configures it.
type Provider struct {
	Name         string // lower-case letters, digits and dashes; used in paths
	Issuer       string // URL, spelled as in the provider's discovery document
	ClientID     string
	ClientSecret string // "" for a public client
}

// Format implements fmt.Formatter. No verb prints the secret.
func (p Provider) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%q at %s", p.Name, p.Issuer) }

// Options configure New. Callback and Sealer are required.
type Options struct {
	Providers []Provider
	Callback  func(provider string) string // URL to which the provider redirects the browser
	Sealer    seal.Sealer
	Client    *http.Client     // default: http.DefaultTransport with limited responses
	Clock     func() time.Time // default: time.Now
}

// Party is the relying party. Its methods may be called concurrently.
type Party struct {
	Options
	providers map[string]Provider
	found     *cache.Loading[string, *endpoint]
}

// Person is a user whom a provider has authenticated. Issuer and Subject together identify a person permanently. An
// address or a name may change, and may later belong to another person.
type Person struct {
	Provider string
	Issuer   string
	Subject  string
	Email    string // verified; "" if there is none
	NoEmail  error  // why there is no Email, fault.Forbidden with code no_verified_address; nil with an Email
	Name     string // for display; may be ""

	// AuthenticatedAt is when the person authenticated at the provider, possibly long before the sign-in. It is zero
	// if the provider does not report it.
	AuthenticatedAt time.Time
}

// metadataAge is how long a provider's discovery document is cached. Its keys are read again if a token names an
// unknown one.
const metadataAge = time.Hour

// New returns a relying party. It rejects providers with malformed or repeated names, and issuers that are not https
// URLs. http is allowed for a loopback address.
func New(o Options) (*Party, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	p := &Party{Options: o, providers: map[string]Provider{}}
	if o.Client == nil {
		p.Client = newBoundedClient(http.DefaultTransport)
	}
	if len(o.Providers) > maxProviders {
		return nil, fmt.Errorf("more than %d OpenID providers", maxProviders)
	}
	for _, provider := range o.Providers {
		if err := checkProvider(provider); err != nil {
			return nil, fmt.Errorf("OpenID provider %q: %w", provider.Name, err)
		}
		if _, twice := p.providers[provider.Name]; twice {
			return nil, fmt.Errorf("OpenID provider %q: the name appears twice", provider.Name)
		}
		p.providers[provider.Name] = provider
	}
	p.found = cache.NewLoading(cache.LoadingOptions[string, *endpoint]{
		MaxAge: metadataAge, Clock: o.Clock, Limit: int64(max(1, len(o.Providers)))})
	return p, nil
}

// maxProviders keeps the list of choices short enough to read.
const maxProviders = 16

func checkProvider(p Provider) error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`).MatchString(p.Name) {
		return errors.New("name must be 1 to 32 lower-case letters, digits and dashes")
	}
	if p.ClientID == "" {
		return errors.New("client_id is missing")
	}
	u, err := url.Parse(p.Issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("issuer must be a URL without query and fragment")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return errors.New("issuer must be an https URL")
	}
	return nil
}

// Names returns the names of the providers in the order of the configuration.
func (p *Party) Names() []string {
	names := make([]string, len(p.Options.Providers))
	for i, provider := range p.Options.Providers {
		names[i] = provider.Name
	}
	return names
}

// HasProvider reports whether a provider is configured.
func (p *Party) HasProvider(name string) bool { return slices.Contains(p.Names(), name) }

// endpoint is a provider whose discovery document was read.
type endpoint struct {
	oauth       oauth2.Config
	provider    *oidc.Provider
	verifier    *oidc.IDTokenVerifier
	issuer      string
	sendsIssuer bool // its responses contain the issuer (RFC 9207)
}

// signingAlgorithms returns the accepted algorithms of ID tokens. HS256 is not accepted, because a client secret is
// shorter than a key and known to both sides.
func signingAlgorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384,
		oidc.PS512, oidc.EdDSA}
}

// findEndpoint returns the endpoint of a provider. It returns fault.NotFound if the name is unknown, and
// fault.Unavailable if the provider cannot be reached.
func (p *Party) findEndpoint(ctx context.Context, name string) (*endpoint, error) {
	provider, ok := p.providers[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "Not found")
	}
	found, err := p.found.Get(ctx, name, func(ctx context.Context) (*endpoint, error) {
		return p.discover(ctx, provider)
	})
	if err != nil {
		return nil, errUnreachable(fmt.Errorf("read discovery document: %w", err))
	}
	return found, nil
}

func (p *Party) discover(ctx context.Context, provider Provider) (*endpoint, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.Client), provider.Issuer)
	if err != nil {
		return nil, err
	}
	var claims struct {
		SendsIssuer bool `json:"authorization_response_iss_parameter_supported"`
	}
	if err := found.Claims(&claims); err != nil {
		return nil, err
	}
	return &endpoint{
		provider: found,
		oauth: oauth2.Config{
			ClientID: provider.ClientID, ClientSecret: provider.ClientSecret, Endpoint: found.Endpoint(),
			RedirectURL: p.Callback(provider.Name), Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
		},
		verifier: found.VerifierContext(oidc.ClientContext(context.WithoutCancel(ctx), p.Client), &oidc.Config{
			ClientID: provider.ClientID, SupportedSigningAlgs: signingAlgorithms(), Now: p.Clock}),
		issuer: provider.Issuer, sendsIssuer: claims.SendsIssuer,
	}, nil
}

func errUnreachable(cause error) error {
	return fault.Wrap(fault.Unavailable, "The sign-in provider cannot be reached", cause)
}
