package console_test

import (
	"slices"
	"strings"
	"testing"
)

const (
	requireCompany = `{"sign_in":{"require":"oidc:company"}}`
	needsCompany   = "The organization requires signing in with the provider company"
)

// An owner who is signed in by a provider requires it. Then every route refuses sessions signed in another way, and the
// other organization is unaffected.
func TestRequiredSignIn(t *testing.T) {
	w := newWorld(t)
	byCompany := as("red-owner+oidc:company")
	if got := w.call(200, "PATCH", "/organization", requireCompany, byCompany)["sign_in"].(map[string]any)["require"]; got != "oidc:company" {
		t.Errorf("got %v", got)
	}
	if got, want := w.kinds(red), []string{"ledger_settings_changed by acc_red-owner"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, route := range w.routed {
		path := strings.NewReplacer("/v1/console", "", "{", "", "}", "").Replace(route.Pattern)
		for _, session := range []string{"red-owner", "red-owner+password", "red-owner+passkey", "red-owner+oidc:other", "red-owner+oidc:", "red-owner+oidc:company2"} {
			w.refuses(route.Method+" "+path+" "+session, w.request(route.Method, path, map[bool]string{true: "{}"}[route.Body.Max > 0], as(session)),
				403, needsCompany)
		}
	}
	w.call(200, "GET", "/agents", "", byCompany)
	w.call(200, "GET", "/agents", "", as("blue-owner"))
	w.refuses("a passkey by the provider", w.request("PATCH", "/organization", `{"sign_in":{"require":"passkey"}}`, byCompany), 409,
		"Sign in that way first: your own session could no longer act")
	w.call(200, "PATCH", "/organization", `{"sign_in":null}`, byCompany)
	w.refuses("null is no change", w.request("GET", "/agents", ""), 403, needsCompany)
	w.call(200, "PATCH", "/organization", `{"sign_in":{"require":null}}`, byCompany)
	w.call(200, "GET", "/agents", "")
}

func TestRequiredSignInRefuses(t *testing.T) {
	w := newWorld(t)
	const unknown = "sign_in/require must be passkey, or oidc: and the name of a provider of the service"
	for _, required := range []string{"oidc:other", "oidc:", "company", "password", "oidc:company ", "recovery_code"} {
		w.refuses(required, w.request("PATCH", "/organization", `{"sign_in":{"require":"`+required+`"}}`, as("red-owner+oidc:other")), 422, unknown)
	}
	for session, want := range map[string]int{"red-owner": 409, "red-owner+password": 409, "red-owner+recovery_code": 409, "red-owner+passkey": 409,
		"red-admin+oidc:company": 403, "red-policy_editor+oidc:company": 403, "red-owner+oidc:company-late": 401} {
		if g := w.do(w.request("PATCH", "/organization", requireCompany, as(session))); g.status != want {
			t.Errorf("%s: got %d %s, want %d", session, g.status, g.text, want)
		}
	}
	w.refuses("unknown member", w.request("PATCH", "/organization", `{"sign_in":{"colour":"red"}}`), 422, `Member "sign_in/colour" is not known`)
	if got := w.kinds(red); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	w.call(200, "PATCH", "/organization", `{"sign_in":{"require":"passkey"}}`, as("red-owner+passkey"))
	w.call(200, "GET", "/organization", "", as("red-member+passkey"))
}
