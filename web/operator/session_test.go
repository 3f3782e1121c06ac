package operator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/web/operator"
)

// A session ends after an hour or at sign-out, and only the latest ones are kept.
func TestSessions(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := operator.NewSessions(func() time.Time { return now })
	one, two := s.Begin("red"), s.Begin("blue")
	if one == two || len(one) < 26 {
		t.Errorf("tokens %q and %q", one, two)
	}
	now = now.Add(time.Hour - 1)
	if got := s.SecretOf(one) + s.SecretOf(two) + s.SecretOf("") + s.SecretOf("x"); got != "redblue" {
		t.Errorf("got %q", got)
	}
	s.End(one)
	if got := s.SecretOf(one) + s.SecretOf(two); got != "blue" {
		t.Errorf("after the end of one: got %q", got)
	}
	now = now.Add(1)
	if got := s.SecretOf(two); got != "" || s.Len() != 0 {
		t.Errorf("after an hour: got %q, %d sessions", got, s.Len())
	}
	var tokens []string
	for i := range 1000 {
		tokens = append(tokens, s.Begin(fmt.Sprint(i)))
	}
	if got := s.SecretOf(tokens[999]); s.Len() != 100 || got != "999" {
		t.Errorf("%d sessions, the newest has %q", s.Len(), got)
	}
}

// Every page and form redirects strangers to the sign-in, and a header has no effect.
func TestStrangers(t *testing.T) {
	s := servicetest.New(t).Operated()
	p := s.Stranger()
	for _, path := range []string{"/operator", "/operator/new", "/operator/organizations/red", "/operator/accounts?email=ann@red.example", "/operator/service"} {
		answers := map[string]servicetest.Answer{"GET": p.Get(path)}
		if path != "/operator" {
			answers["POST"] = p.Post(path, "do", "switch-off", "email", "ann@red.example")
		}
		for what, got := range answers {
			got.Want(t, what+" "+path, http.StatusSeeOther)
			if to := got.Header.Get("Location"); !strings.HasPrefix(to, "/operator/signin?return=%2Foperator") {
				t.Errorf("%s %s leads to %q", what, path, to)
			}
		}
	}
	p.With("X-Platform-Secret", servicetest.Secret).Get("/operator").Want(t, "a header", http.StatusSeeOther)
	p.With("Cookie", "agentledger-operator="+servicetest.Secret).Get("/operator").Want(t, "a wrong cookie", http.StatusSeeOther)
	p.Get("/operator/signin").Want(t, "the sign-in", http.StatusOK, "Platform secret")
	p.Get("/operator/signout").Want(t, "the sign-out", http.StatusOK, "Sign out")
	p.Get("/operator/none").Want(t, "no page", http.StatusNotFound)
	p.Post("/operator/signin", "do", "other").Want(t, "no form", http.StatusUnprocessableEntity)
}

// The main listener serves no operator page.
func TestMainListener(t *testing.T) {
	s := servicetest.New(t)
	for _, path := range []string{"/operator", "/operator/signin", "/operator/service"} {
		s.Stranger().Get(path).Want(t, path, http.StatusNotFound)
	}
}

// No answer contains the secret, the cookie is sent only to these pages, and guesses are slowed down.
func TestSignIn(t *testing.T) {
	s := servicetest.New(t).Operated()
	p := s.Stranger()
	p.Post("/operator/signin", "do", "sign-in", "secret", "").Want(t, "none", http.StatusUnauthorized, "Invalid platform secret")
	p.Post("/operator/signin", "do", "sign-in", "secret", "guessed-secret").Want(t, "wrong", http.StatusUnauthorized, "Invalid platform secret").
		WantNone(t, "wrong", "guessed-secret")
	got := p.Post("/operator/signin", "do", "sign-in", "secret", " "+servicetest.Secret+"\n", "return", "/operator/service")
	got.Want(t, "right", http.StatusSeeOther).WantNone(t, "right", servicetest.Secret)
	cookie := got.Header.Get("Set-Cookie")
	for _, part := range []string{"; Path=/operator", "; Max-Age=3600", "; HttpOnly", "; SameSite=Strict"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie is %q, without %q", cookie, part)
		}
	}
	if to := got.Header.Get("Location"); to != "/operator/service" || strings.Contains(cookie, "Secure") || strings.Contains(cookie, servicetest.Secret) {
		t.Errorf("leads to %q with %q", to, cookie)
	}
	page := p.Get("/operator/service").Want(t, "the service", http.StatusOK, "The operator", "ready")
	page.WantNone(t, "the service", servicetest.Secret)
	if page.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v", page.Header)
	}
	for _, do := range []string{"sign-in", "accept-clock"} {
		for path, from := range map[string]string{"/operator/signin": "cross-site", "/operator/service": "same-site"} {
			p.With("Sec-Fetch-Site", from).Post(path, "do", do, "secret", servicetest.Secret).Want(t, from+" "+path, http.StatusForbidden, "another origin")
		}
	}
	if got := s.Stranger().With("X-Forwarded-Proto", "https").Post("/operator/signin", "do", "sign-in", "secret", servicetest.Secret); !strings.Contains(got.Header.Get("Set-Cookie"), "Secure") {
		t.Errorf("behind TLS: got %v", got.Header)
	}
	p.Post("/operator/signout").Want(t, "sign out", http.StatusSeeOther)
	p.Get("/operator").Want(t, "after it", http.StatusSeeOther)
	for range 10 {
		p.Post("/operator/signin", "do", "sign-in", "secret", "guessed-secret")
	}
	p.Post("/operator/signin", "do", "sign-in", "secret", servicetest.Secret).Want(t, "limited", http.StatusTooManyRequests, "Too many wrong platform secrets")
	for _, secret := range []string{servicetest.Secret, "guessed-secret"} {
		if strings.Contains(s.Log(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if !strings.Contains(s.Log(), "platform secret refused") {
		t.Errorf("the log does not mention wrong secrets: %s", s.Log())
	}
}
