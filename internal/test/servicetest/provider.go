package servicetest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/openidtest"
)

// NewWithProvider is New with an OpenID provider, which does not tell when its people proved to be there.
func NewWithProvider(t testing.TB, more ...string) *Service {
	t.Helper()
	provider := openidtest.New(t)
	s := New(t, append(ProviderFlags(t, provider), more...)...)
	s.provider = provider
	return s
}

// ProviderFlags returns the arguments of serve for a service whose people sign in at an OpenID provider. Its name is
// company.
func ProviderFlags(t testing.TB, p *openidtest.Provider) []string {
	t.Helper()
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "config.json")
	for path, text := range map[string]string{secret: openidtest.ClientSecret + "\n",
		file: fmt.Sprintf(`{"openid":[{"name":"company","issuer":%q,"client_id":%q,"client_secret_file":%q}]}`,
			p.URL, openidtest.ClientID, secret)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--config", file}
}

// SignInByProvider returns a person who signed in at the provider. The person's next vote needs a step-up.
func (s *Service) SignInByProvider(email string) *Person {
	s.Helper()
	s.provider.Claims = func(claims map[string]any) {
		claims["email"], claims["sub"] = email, "subject of "+email
		delete(claims, "auth_time")
	}
	p := s.Stranger()
	signIn := func() Answer {
		started := p.Get("/v1/id/auth/oidc/company/start?return=/console")
		answer := s.provider.Authorize(started.Header.Get("Location"))
		return p.Get("/v1/id/auth/oidc/company/callback?" + answer.Encode())
	}
	ended := signIn()
	if ended.Status == http.StatusUnauthorized { // the account has a password, which connects the provider
		p.Post("/signin", "do", "sign-in", "email", email, "password", Password)
		p.Post("/signout", "do", "sign-out")
		ended = signIn()
	}
	if ended.Status != http.StatusSeeOther {
		s.Fatalf("sign in %s at the provider: got %d %s", email, ended.Status, ended.Body)
	}
	return p
}

// Become gives the browser the session of a person.
func (b *Browser) Become(p *Person) {
	b.service.Helper()
	for _, c := range p.client.Jar.Cookies(p.service.address()) {
		b.Emulate("Network.setCookie", map[string]any{"url": b.service.URL, "name": c.Name, "value": c.Value,
			"httpOnly": true, "secure": strings.HasPrefix(c.Name, "__Host-"), "path": "/", "sameSite": "Lax"})
	}
}
