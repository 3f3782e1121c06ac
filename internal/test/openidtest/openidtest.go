// Package openidtest is an OpenID provider for tests: it publishes keys, redeems codes with PKCE, and signs any tokens
// that a test asks for, including wrong ones.
//
// Invariant: an unchanged provider follows OpenID Connect Core and RFC 7636. It redeems a code once, for the client,
// redirect URI and verifier that it was issued for, and adds auth_time if the request has max_age.
package openidtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Provider is an OpenID provider over HTTP. A test may change the exported fields between calls.
type Provider struct {
	*httptest.Server
	T testing.TB

	Claims   func(map[string]any)             // changes the claims of a token; nil leaves a claim out
	UserInfo func(map[string]any)             // changes the claims of UserInfo; nil: there is no such endpoint
	Broken   func(http.ResponseWriter)        // answers in place of UserInfo
	Answer   func(url.Values)                 // changes the answer to the browser
	Token    func(w http.ResponseWriter) bool // answers in place of the token endpoint
	Metadata func(map[string]any)             // changes the discovery document
	Endless  func(http.ResponseWriter)        // answers in place of the discovery document
	Lenient  bool                             // redeems every code, for every verifier
	Clock    func() time.Time                 // default: time.Now

	mu     sync.Mutex
	keys   []jose.JSONWebKey // published
	signer jose.SigningKey
	codes  map[string]granted
}

// granted is the authorization request behind a code.
type granted struct {
	client, redirect, challenge, nonce string
	tellsTime                          bool // the request has max_age
}

// The only client of each provider.
const (
	ClientID     = "ledger-client"
	ClientSecret = "ledger-client-secret"
)

// New returns a provider that ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{T: t, codes: map[string]granted{}, Clock: time.Now}
	endpoints := map[string]http.HandlerFunc{
		"GET /authorize":                        p.serveConsent,
		"GET /.well-known/openid-configuration": p.serveMetadata, "GET /keys": p.serveKeys, "POST /token": p.serveToken,
		"GET /userinfo": p.serveUserInfo,
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve, ok := endpoints[r.Method+" "+r.URL.Path]
		if !ok {
			serve = http.NotFound
		}
		serve(w, r)
	}))
	t.Cleanup(p.Close)
	p.RotateKey("first")
	return p
}

// RotateKey publishes a new RSA key beside the others and signs with it from now on.
func (p *Provider) RotateKey(name string) {
	private, err := keys.named(name)
	if err != nil {
		p.T.Fatal(err)
	}
	p.Use(name, jose.RS256, private, private.Public())
}

// keyring caches RSA keys by name, because generating one takes longer than most tests.
type keyring struct {
	mu     sync.Mutex
	cached map[string]*rsa.PrivateKey
}

// keys are shared by all providers of a process. Different names have different keys.
var keys = keyring{cached: make(map[string]*rsa.PrivateKey)}

func (k *keyring) named(name string) (*rsa.PrivateKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if private, ok := k.cached[name]; ok {
		return private, nil
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	k.cached[name] = private
	return private, nil
}

// Use signs with a key from now on. If public is nil, the key is not published.
func (p *Provider) Use(name string, algorithm jose.SignatureAlgorithm, private any, public crypto.PublicKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signer = jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: private, KeyID: name}}
	if public != nil {
		p.keys = append(p.keys, jose.JSONWebKey{Key: public, KeyID: name, Algorithm: string(algorithm), Use: "sig"})
	}
}

func (p *Provider) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	if p.Endless != nil {
		p.Endless(w)
		return
	}
	document := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize",
		"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"}}
	if p.UserInfo != nil || p.Broken != nil {
		document["userinfo_endpoint"] = p.URL + "/userinfo"
	}
	if p.Metadata != nil {
		p.Metadata(document)
	}
	_ = json.NewEncoder(w).Encode(document)
}

// serveUserInfo answers with the claims of the person whose access token the request carries.
func (p *Provider) serveUserInfo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret-access-token" {
		p.T.Errorf("UserInfo: got authorization %q", r.Header.Get("Authorization"))
	}
	if p.Broken != nil {
		p.Broken(w)
		return
	}
	claims := map[string]any{"sub": "subject-1", "email": "ann@example.com", "email_verified": true, "name": "Ann"}
	p.UserInfo(claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(claims)
}

func (p *Provider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.keys})
}

// Authorize plays the person's consent: it reads the request to the authorization endpoint and returns the answer that
// the provider sends through the browser.
func (p *Provider) Authorize(address string) url.Values {
	u, err := url.Parse(address)
	if err != nil {
		p.T.Fatal(err)
	}
	q := u.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		q.Get("scope") != "openid email profile" {
		p.T.Errorf("authorization request: got %v", q)
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = granted{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce"),
		q.Has("max_age")}
	answer := url.Values{"code": {code}, "state": {q.Get("state")}}
	if p.Answer != nil {
		p.Answer(answer)
	}
	return answer
}

// serveConsent plays the person's consent in a browser, which it redirects to the service at once.
func (p *Provider) serveConsent(w http.ResponseWriter, r *http.Request) {
	answer := p.Authorize(r.URL.String())
	http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?"+answer.Encode(), http.StatusSeeOther)
}

// serveToken redeems a code once, if client and verifier match the code's request.
func (p *Provider) serveToken(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Token != nil && p.Token(w) {
		return
	}
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	g, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !p.Lenient && (!ok || id != ClientID || secret != ClientSecret || g.client != id ||
		g.redirect != r.PostFormValue("redirect_uri") ||
		g.challenge != base64.RawURLEncoding.EncodeToString(sum[:])) {
		http.Error(w, `{"error":"invalid_grant","error_description":"secret-of-the-provider"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "secret-access-token", "token_type": "Bearer",
		"expires_in": 60, "id_token": p.signToken(g)})
}

// signToken returns the ID token for a code.
func (p *Provider) signToken(g granted) string {
	claims := map[string]any{"iss": p.URL, "sub": "subject-1", "aud": ClientID, "nonce": g.nonce,
		"iat": p.Clock().Unix(), "exp": p.Clock().Add(time.Minute).Unix(),
		"email": "ann@example.com", "email_verified": true,
		"name": "Ann"}
	if g.tellsTime {
		claims["auth_time"] = p.Clock().Unix()
	}
	if p.Claims != nil {
		p.Claims(claims)
	}
	return p.Sign(claims)
}

// Sign returns a token of the provider. A claim that is nil is left out.
func (p *Provider) Sign(claims map[string]any) string {
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(claims)
	if err != nil {
		p.T.Error(err)
	}
	if p.signer.Key == nil { // algorithm none
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
			base64.RawURLEncoding.EncodeToString(text) + "."
	}
	signer, err := jose.NewSigner(p.signer, nil)
	if err != nil {
		p.T.Error(err)
		return ""
	}
	signed, err := signer.Sign(text)
	if err != nil {
		p.T.Error(err)
		return ""
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		p.T.Error(err)
	}
	return compact
}

// Unsigned makes the provider send tokens with algorithm none.
func (p *Provider) Unsigned() { p.signer = jose.SigningKey{} }
