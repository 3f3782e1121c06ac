// Package openid signs people in at a third-party OpenID provider, in the real program.
package openid

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/interop"
)

const (
	client   = "ledger"
	secret   = "a secret for tests"
	callback = "http://log.test/v1/id/auth/oidc/company/callback"
)

// startProvider starts the provider and returns its issuer.
func startProvider(t *testing.T) string {
	t.Helper()
	p := exec.Command("node", "provider.mjs", client, secret, callback)
	input, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); _ = p.Wait() })
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http://") {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return lines.Text()
		}
	}
	t.Fatal("the provider did not start: run npm ci in interop/openid")
	return ""
}

// browser follows redirects, except to the service, whose name log.test resolves nowhere.
type browser struct {
	*testing.T
	http.Client
	service string
}

func newBrowser(t *testing.T, s *interop.Service) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{T: t, service: "http://" + s.Address, Client: http.Client{Jar: jar,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host == "log.test" || strings.HasSuffix(via[len(via)-1].URL.Path, "/callback") {
				return http.ErrUseLastResponse
			}
			return nil
		}}}
}

func (b *browser) must(answer *http.Response, err error) *http.Response {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { answer.Body.Close() })
	return answer
}

// signIn signs a user in at the provider and returns the status and body of the callback.
func (b *browser) signIn(login string) (int, string) {
	b.Helper()
	started := b.must(b.Get(b.service + "/v1/id/auth/oidc/company/start?return=/console"))
	for _, form := range []url.Values{{"prompt": {"login"}, "login": {login}, "password": {"any"}}, {"prompt": {"consent"}}} {
		if started.StatusCode == http.StatusSeeOther {
			break // the provider knows the person and the consent
		}
		if started.StatusCode != http.StatusOK {
			b.Fatalf("the provider: got %d at %s", started.StatusCode, started.Request.URL)
		}
		started = b.must(b.PostForm(started.Request.URL.String(), form))
	}
	back, err := started.Location()
	if err != nil || back.Host != "log.test" {
		text, _ := io.ReadAll(started.Body)
		b.Fatalf("the provider: got %d, %v, %s", started.StatusCode, err, text)
	}
	ended := b.must(b.Get(b.service + back.RequestURI()))
	text, err := io.ReadAll(ended.Body)
	if err != nil {
		b.Fatal(err)
	}
	return ended.StatusCode, string(text)
}

// The provider returns email only from its UserInfo endpoint, like most providers in the code flow.
func TestSignInAtOIDCProvider(t *testing.T) {
	dir := t.TempDir()
	secretFile, file := filepath.Join(dir, "secret"), filepath.Join(dir, "config.json")
	config := fmt.Sprintf(`{"openid":[{"name":"company","issuer":%q,"client_id":%q,"client_secret_file":%q}]}`,
		startProvider(t), client, secretFile)
	for path, text := range map[string]string{secretFile: secret, file: config} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := interop.StartWith(t, "--config", file)

	// The owner's account has a password: the first sign-in requires it, and later ones do not.
	ops := newBrowser(t, s)
	if status, body := ops.signIn("ops"); status != http.StatusUnauthorized || !strings.Contains(body, `"link_required"`) {
		t.Fatalf("first sign-in: got %d %s", status, body)
	}
	credentials := `{"email":"ops@acme.example","password":"a password for tests"}`
	linked := ops.must(ops.Post(ops.service+"/v1/id/auth/login", "application/json", strings.NewReader(credentials)))
	if linked.StatusCode != http.StatusOK {
		t.Fatalf("connect the provider: got %d", linked.StatusCode)
	}
	for range 5 {
		b := newBrowser(t, s)
		if status, body := b.signIn("ops"); status != http.StatusSeeOther {
			t.Fatalf("sign-in: got %d %s", status, body)
		}
		me := b.must(b.Get(b.service + "/v1/id/auth/me"))
		if text, err := io.ReadAll(me.Body); err != nil || me.StatusCode != http.StatusOK || !strings.Contains(string(text), "ops@acme.example") {
			t.Errorf("me: got %d %s, %v", me.StatusCode, text, err)
		}
	}
	for login, want := range map[string]string{"stranger": "No account belongs to this sign-in", "unverified": `"no_verified_address"`} {
		if status, body := newBrowser(t, s).signIn(login); status != http.StatusForbidden || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s", login, status, body)
		}
	}
}
