package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/openidtest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A user signs in by password, arrives at a page of this service, and signs out.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.Stranger()
	redirects(t, "a page without a session", ann.Get("/console/ingest-keys?after=x"), "/signin?return=%2Fconsole%2Fingest-keys%3Fafter%3Dx")
	shows(t, "sign in", ann.Get("/signin?return=%2Fconsole%2Fingest-keys"), http.StatusOK, `name="return" value="/console/ingest-keys"`)
	wrong := ann.Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", "wrong <password>")
	shows(t, "wrong password", wrong, http.StatusUnauthorized, "Invalid e-mail address or password", `value="`+s.Red.Owner+`"`)
	if strings.Contains(wrong.Body, "wrong ") {
		t.Errorf("the page contains the password: %s", wrong.Body)
	}
	shows(t, "an unknown address", ann.Post("/signin", "do", "sign-in", "email", "eve@red.example", "password", "wrong <password>"),
		http.StatusUnauthorized, "Invalid e-mail address or password")
	for _, to := range []string{"https://evil.example/", "//evil.example/", `/\evil.example/`, "/%2fevil.example", "javascript:alert(1)", "/\r\nX: y", "console"} {
		redirects(t, to, ann.Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", servicetest.Password, "return", to), "/console")
		redirects(t, to+" in the address", ann.Post("/signin?return="+url.QueryEscape(to), "do", "sign-in", "email", s.Red.Owner,
			"password", servicetest.Password), "/console")
		if page := ann.Get("/signin?return=" + url.QueryEscape(to)); strings.Contains(page.Body, "evil") || strings.Contains(page.Body, "alert(1)") {
			t.Errorf("the page contains %s: %s", to, page.Body)
		}
	}
	redirects(t, "sign in", ann.Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", servicetest.Password, "return", "/console/ingest-keys?after=x"),
		"/console/ingest-keys?after=x")
	shows(t, "signed in", ann.Get("/console"), http.StatusOK, s.Red.Owner)
	redirects(t, "sign out", ann.Post("/signout"), "/signin?notice=signed-out")
	shows(t, "signed out", ann.Get("/signin?notice=signed-out"), http.StatusOK, "You are signed out.")
	redirects(t, "after the sign-out", ann.Get("/console"), "/signin?return=%2Fconsole")
	shows(t, "an unknown notice", ann.Get("/signin?notice=%3Cb%3E&refused=%3Cb%3E"), http.StatusOK)
	shows(t, "an unknown form", ann.Post("/signin", "do", "other"), http.StatusUnprocessableEntity, "can&#39;t be read")
}

var codeOf = regexp.MustCompile(`<code class="secret">([^<]+)</code>`)

// An account with recovery codes needs one in addition to its password.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	codes := codeOf.FindAllStringSubmatch(ann.Post("/account/factors", "do", "codes").Body, -1)
	if len(codes) != 10 {
		t.Fatalf("got %d codes", len(codes))
	}
	other := s.Stranger()
	redirects(t, "password", other.Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", servicetest.Password, "return", "/account"),
		"/signin/second?return=%2Faccount")
	redirects(t, "the password alone", other.Get("/account"), "/signin?return=%2Faccount")
	shows(t, "second factor", other.Get("/signin/second?return=%2Faccount"), http.StatusOK, "Recovery code")
	wrong := other.Post("/signin/second", "do", "recovery-code", "code", "aaaa-bbbb", "return", "/account")
	shows(t, "wrong code", wrong, http.StatusUnauthorized, "Wrong recovery code", `value="/account"`)
	if strings.Contains(wrong.Body, "aaaa-bbbb") {
		t.Errorf("the code is shown a second time: %s", wrong.Body)
	}
	redirects(t, "code", other.Post("/signin/second", "do", "recovery-code", "code", codes[0][1], "return", "/account"), "/account")
	shows(t, "signed in", other.Get("/account/factors"), http.StatusOK, "9 codes are left")
	stranger := s.Stranger()
	shows(t, "without a password", stranger.Post("/signin/second", "do", "recovery-code", "code", codes[1][1]), http.StatusUnauthorized, "start again")
	stranger.Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", servicetest.Password)
	shows(t, "a used code", stranger.Post("/signin/second", "do", "recovery-code", "code", codes[0][1]), http.StatusUnauthorized, "Wrong recovery code")
}

// A user signs in at a provider in a browser. The page explains a rejection.
func TestProvider(t *testing.T) {
	t.Parallel()
	provider := openidtest.New(t)
	subject := "ann"
	provider.Claims = func(c map[string]any) { c["sub"], c["email"] = subject, subject+"@red.example" }
	s := servicetest.New(t, servicetest.ProviderFlags(t, provider)...)
	b := s.Browser()
	b.Visit("/signin?return=%2Faccount")
	b.Press("main li a")
	if got := b.Text("#problem"); !strings.Contains(got, "to connect the provider") {
		t.Errorf("got %q", got)
	}
	b.Fill("email", s.Red.Owner)
	b.Fill("password", servicetest.Password)
	b.Press(`button[value="sign-in"]`)
	if got := b.Text("#nav"); !strings.Contains(got, s.Red.Owner) {
		t.Errorf("got %q", got)
	}
	if got := b.Text("h1"); got != "Your account" {
		t.Errorf("got %q", got)
	}
	b.Press("form.me button")
	subject = "eve"
	b.Press("main li a")
	if got := b.Text("#problem"); got != "No account of a member belongs to this sign-in: ask for an invitation." {
		t.Errorf("got %q", got)
	}
	if got := b.Messages(); len(got) > 0 {
		t.Errorf("console messages: %q", got)
	}
}

// If an organization requires a provider, a session by password can't act, and the page explains what to do.
func TestRequiredSignIn(t *testing.T) {
	t.Parallel()
	provider := openidtest.New(t)
	provider.Claims = func(c map[string]any) { c["email"] = "ann@red.example" }
	s := servicetest.New(t, servicetest.ProviderFlags(t, provider)...)
	carl := s.SignIn(s.Red.Join("carl", "auditor"))
	ann := s.Stranger()
	begun := ann.Get("/v1/id/auth/oidc/company/start?return=/console")
	answer := provider.Authorize(begun.Header.Get("Location"))
	if got := ann.Get("/v1/id/auth/oidc/company/callback?" + answer.Encode()); got.Status != http.StatusUnauthorized {
		t.Errorf("the provider's first answer: got %d", got.Status)
	}
	redirects(t, "the password connects the provider", ann.Post("/signin?return=/console", "do", "sign-in", "email", s.Red.Owner,
		"password", servicetest.Password, "return", "/console"), "/console")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"sign_in": map[string]string{"require": "oidc:company"}}, nil)

	shows(t, "the provider's session", ann.Get("/console"), http.StatusOK)
	shows(t, "another session", carl.Get("/console/ingest-keys?after=x"), http.StatusForbidden, "requires signing in with the provider company",
		`href="/signin?return=%2Fconsole%2Fingest-keys%3Fafter%3Dx"`, `href="/account#organizations"`)
	shows(t, "a form", carl.Post("/console/ingest-keys", "do", "create", "name", "x"), http.StatusForbidden, "Sign in the required way")
	shows(t, "the account", carl.Get("/account"), http.StatusOK, "carl@red.example")
	shows(t, "the ways in", carl.Get("/signin?return=%2Fconsole"), http.StatusOK,
		`href="/v1/id/auth/oidc/company/start?return=%2fconsole"`)
}

// An account of another organization signs in to the organization that is offered to it, and belongs to both.
func TestOffer(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	s.Offer("Green", "green", s.Blue.Owner)
	bob := s.SignIn(s.Blue.Owner)
	page := bob.Get("/account").Body
	offer := regexp.MustCompile(`name="organization_id" value="([^"]+)">\s*<button class="btn ghost full" name="do" value="switch">Accept the offer and enter <bdi>Green`).FindStringSubmatch(page)
	if offer == nil {
		t.Fatalf("no offer: %s", page)
	}
	shows(t, "another organization", bob.Post("/account", "do", "switch", "organization_id", s.Red.ID), http.StatusForbidden, "Not a member of the organization")
	redirects(t, "accept", bob.Post("/account", "do", "switch", "organization_id", offer[1]), "/console")
	shows(t, "inside", bob.Get("/console"), http.StatusOK, "Overview · Green", "owner")
	redirects(t, "back", bob.Post("/account", "do", "switch", "organization_id", s.Blue.ID), "/console")
	shows(t, "back", bob.Get("/console"), http.StatusOK, "Overview · Blue")
}
