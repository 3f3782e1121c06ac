package main

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/openidtest"
)

// A user signs in at the provider of the configuration file, in the real program.
func TestOpenIDSignIn(t *testing.T) {
	provider := openidtest.New(t)
	provider.Claims = func(c map[string]any) { c["email"] = "ops@red.example" }
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "config.json")
	for path, text := range map[string]string{secret: openidtest.ClientSecret + "\n",
		file: fmt.Sprintf(`{"openid":[{"name":"company","issuer":%q,"client_id":%q,"client_secret_file":%q}]}`,
			provider.URL, openidtest.ClientID, secret)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := startProcess(t, filepath.Join(dir, "data"), "--config", file)
	p.found(t.Context(), "red", nil)
	p.found(t.Context(), "blue", nil)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(path string, status int) *http.Response {
		t.Helper()
		answer, err := browser.Get(p.main + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != status {
			t.Fatalf("%s: got %d, want %d", path, answer.StatusCode, status)
		}
		return answer
	}
	get("/v1/id/auth/me", 401)
	first := get("/v1/id/auth/oidc/company/start", 303)
	get("/v1/id/auth/oidc/company/callback?"+provider.Authorize(first.Header.Get("Location")).Encode(), 401) // the account has a password
	body := strings.NewReader(`{"email":"ops@red.example","password":"` + testPassword + `"}`)
	linked, err := browser.Post(p.main+"/v1/id/auth/login", "application/json", body)
	if err != nil || linked.StatusCode != 200 {
		t.Fatalf("connect the provider: got %v, %v", linked, err)
	}
	linked.Body.Close()
	if jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	browser.Jar = jar
	started := get("/v1/id/auth/oidc/company/start?return=/welcome", 303)
	answer := provider.Authorize(started.Header.Get("Location"))
	ended := get("/v1/id/auth/oidc/company/callback?"+answer.Encode(), 303)
	if got := ended.Header.Get("Location"); got != "/welcome" {
		t.Errorf("got %s", got)
	}
	get("/v1/id/auth/me", 200)
	get("/v1/id/auth/oidc/company/callback?"+answer.Encode(), 401) // the flow has ended
}
