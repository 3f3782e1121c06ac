package identity_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/openidtest"
)

const oidcPath = "/v1/id/auth/oidc"

// openIDWorld is a service with one provider and one organization, owned by ann.
type openIDWorld struct {
	*world
	provider *openidtest.Provider
}

func newOpenIDWorld(t testing.TB) *openIDWorld { return newOpenIDWorldOn(t, openidtest.New(t)) }

func newOpenIDWorldOn(t testing.TB, p *openidtest.Provider) *openIDWorld {
	w := &openIDWorld{provider: p}
	w.world = newWorld(t, func(o *identity.Options) {
		now := time.Now()
		o.Now = func() time.Time { return now }
		keyring, err := seal.NewKeyring(seal.NewKey())
		if err != nil {
			t.Fatal(err)
		}
		party, err := oidc.New(oidc.Options{
			Providers: []oidc.Provider{{Name: "company", Issuer: p.URL, ClientID: openidtest.ClientID, ClientSecret: openidtest.ClientSecret}},
			Sealer:    keyring,
			Callback:  func(name string) string { return publicURL + oidcPath + "/" + name + "/callback" },
		})
		if err != nil {
			t.Fatal(err)
		}
		o.OpenID = party
	})
	w.setUp(w.beginSetup(), "red", email, password)
	return w
}

// begin starts a sign-in and returns the browser's cookie and the provider's answer.
func (w *openIDWorld) begin(query string) (cookie string, answer url.Values) {
	w.t.Helper()
	started := w.call("GET", oidcPath+"/company/start"+query, "")
	if started.Code != 303 || started.Header().Get("Cache-Control") != "no-store" {
		w.t.Fatalf("start: got %d %s", started.Code, started.Body)
	}
	return w.flowCookie(started), w.provider.Authorize(started.Header().Get("Location"))
}

// flowCookie returns the cookie of a pending sign-in, or "" if an answer deletes it.
func (w *openIDWorld) flowCookie(answer *httptest.ResponseRecorder) string {
	w.t.Helper()
	for _, c := range answer.Result().Cookies() {
		if c.Name != "__Host-agentledger_oidc" {
			continue
		}
		if !c.HttpOnly || !c.Secure || c.Path != "/" || c.Domain != "" || c.SameSite != 2 {
			w.t.Errorf("cookie of the flow: got %s", c)
		}
		if c.MaxAge > 0 {
			return c.Name + "=" + c.Value
		}
		return ""
	}
	w.t.Error("no cookie of the flow")
	return ""
}

// session returns the cookie of the session that an answer opens.
func (w *openIDWorld) session(answer *httptest.ResponseRecorder) string {
	w.t.Helper()
	for _, c := range answer.Result().Cookies() {
		if !strings.HasSuffix(c.Name, "oidc") && c.MaxAge > 0 {
			return c.Name + "=" + c.Value
		}
	}
	w.t.Fatalf("no session: %v", answer.Header())
	return ""
}

func (w *openIDWorld) finish(cookie string, query url.Values) *httptest.ResponseRecorder {
	return w.call("GET", oidcPath+"/company/callback?"+query.Encode(), "", "Cookie", cookie)
}

// link links ann with the provider's person: she signs in there, and then with the password.
func (w *openIDWorld) link() {
	w.t.Helper()
	before := w.provider.Claims
	w.provider.Claims = func(c map[string]any) { c["email"] = email }
	cookie, query := w.begin("")
	refused := w.finish(cookie, query)
	answers(w.t, "first sign-in", refused, 401, linkRequired)
	var link string
	for _, c := range refused.Result().Cookies() {
		if c.Name == "__Host-agentledger_link" && c.HttpOnly && c.Secure && c.MaxAge > 0 {
			link = c.Name + "=" + c.Value
		}
	}
	w.decode(w.call("POST", login, `{"email":"`+email+`","password":"`+password+`"}`, "Cookie", link), 200, &signedIn{})
	w.provider.Claims = before
}

const linkRequired = `{"error":"The account has another way to sign in: use it once, in this browser, to connect the provider","code":"link_required"}`

func TestOpenID(t *testing.T) {
	w := newOpenIDWorld(t)
	w.link()
	answers(t, "providers", w.call("GET", oidcPath, ""), 200, `{"providers":[{"name":"company","start":"/v1/id/auth/oidc/company/start"}]}`)
	w.provider.Claims = func(c map[string]any) { c["email"] = "Ann@Example.com" }
	cookie, query := w.begin("?return=/approvals/7")
	ended := w.finish(cookie, query)
	if ended.Code != 303 || ended.Header().Get("Location") != "/approvals/7" || ended.Header().Get("Referrer-Policy") != "no-referrer" {
		t.Fatalf("callback: got %d %v %s", ended.Code, ended.Header(), ended.Body)
	}
	if got := w.flowCookie(ended); got != "" {
		t.Errorf("the flow goes on: %s", got)
	}
	var who signedIn
	w.decode(w.call("GET", me, "", "Cookie", w.session(ended)), 200, &who)
	if who.Account.Email != email || who.Organization.Slug != "red" || who.User.Role != "owner" {
		t.Errorf("got %+v", who)
	}
	// From now on the link counts: the address may change or belong to another member.
	w.provider.Claims = func(c map[string]any) { c["email"], c["email_verified"] = "other@example.com", false }
	cookie, query = w.begin("")
	ended = w.finish(cookie, query)
	w.decode(w.call("GET", me, "", "Cookie", w.session(ended)), 200, &who)
	if ended.Header().Get("Location") != "/" || who.Account.Email != email {
		t.Errorf("again: got %+v, %v", who, ended.Header())
	}
	for _, secret := range []string{query.Get("code"), query.Get("state"), openidtest.ClientSecret, cookie} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// A session is as fresh as the provider says, and not fresh if it says nothing. A fresh sign-in steps up such a
// session, or one with an old proof.
func TestOpenIDFactor(t *testing.T) {
	w := newOpenIDWorld(t)
	w.link()
	for _, tt := range []struct {
		query   string
		claimed any // auth_time
		due     bool
	}{
		{"", nil, true}, {"", time.Now().Unix(), false}, {"", w.Clock().Add(-time.Hour).Unix(), true}, {"?fresh=1", time.Now().Unix(), false},
	} {
		w.provider.Claims = func(c map[string]any) { c["email"], c["auth_time"] = email, tt.claimed }
		cookie, query := w.begin(tt.query)
		_, token, _ := strings.Cut(w.session(w.finish(cookie, query)), "=")
		session, err := w.accounts.Session(t.Context(), token)
		if err != nil || session.StepUpDue != tt.due {
			t.Errorf("%q, %v: got %+v, %v, want due %v", tt.query, tt.claimed, session, err, tt.due)
		}
	}
	w.provider.Claims = func(c map[string]any) { c["email"], c["auth_time"] = email, nil }
	cookie, query := w.begin("?fresh=1")
	answers(t, "a provider without auth_time", w.finish(cookie, query), 401, `{"error":"The sign-in failed"}`)
}

func TestOpenIDRefusals(t *testing.T) {
	const failed = `{"error":"The sign-in failed"}`
	const unverified = `{"error":"The provider has not verified your e-mail address","code":"no_verified_address"}`
	const missing = `{"error":"The provider returned no e-mail address: it has to release email and email_verified to this service","code":"no_verified_address"}`
	const nobody = `{"error":"No account belongs to this sign-in: ask for an invitation"}`
	for name, tt := range map[string]struct {
		change func(w *openIDWorld, cookie *string, query url.Values)
		status int
		want   string
	}{
		"another browser":       {func(_ *openIDWorld, cookie *string, _ url.Values) { *cookie = "" }, 401, failed},
		"another state":         {func(_ *openIDWorld, _ *string, q url.Values) { q.Set("state", "A") }, 401, failed},
		"an unknown code":       {func(_ *openIDWorld, _ *string, q url.Values) { q.Set("code", "A") }, 401, failed},
		"an unknown person":     {claim("email", "eve@example.com"), 403, nobody},
		"an unverified address": {claim("email_verified", false), 403, unverified},
		"no address":            {claim("email", nil), 403, missing},
		"a member of nothing": {func(w *openIDWorld, _ *string, _ url.Values) {
			if _, _, err := w.accounts.Ensure(w.t.Context(), "ann2@example.com", ""); err != nil {
				w.t.Fatal(err)
			}
			w.provider.Claims = func(c map[string]any) { c["email"] = "ann2@example.com" }
		}, 403, `{"error":"Not a member of the organization"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newOpenIDWorld(t)
			w.t = t
			cookie, query := w.begin("")
			tt.change(w, &cookie, query)
			answer := w.finish(cookie, query)
			answers(t, name, answer, tt.status, tt.want)
			if w.flowCookie(answer) != "" || strings.Contains(strings.Join(answer.Header()["Set-Cookie"], " "), "__Host-agentledger=") {
				t.Errorf("cookies: got %v", answer.Header()["Set-Cookie"])
			}
		})
	}
	w := newOpenIDWorld(t)
	answers(t, "unknown provider", w.call("GET", oidcPath+"/other/start", ""), 404, `{"error":"Not found"}`)
	answers(t, "callback of an unknown provider", w.call("GET", oidcPath+"/other/callback?state=a&code=b", ""), 404, `{"error":"Not found"}`)
	for _, path := range []string{"https://evil.example", "//evil.example", `/\evil.example`} {
		answers(t, path, w.call("GET", oidcPath+"/company/start?return="+url.QueryEscape(path), ""), 422,
			`{"error":"return must be a path of this service"}`)
	}
	w.provider.Close()
	answer := newOpenIDWorldOn(t, w.provider).call("GET", oidcPath+"/company/start", "")
	if answer.Code != 503 || !strings.Contains(answer.Body.String(), "The sign-in provider cannot be reached") || answer.Header().Get("Retry-After") == "" {
		t.Errorf("closed provider: got %d %s", answer.Code, answer.Body)
	}
}

// A browser is redirected to the sign-in page with the reason; a program gets the refusal.
func TestOpenIDRefusalsOfBrowsers(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	w := newOpenIDWorld(t)
	refuse := func(change func(url.Values)) *httptest.ResponseRecorder {
		cookie, query := w.begin("")
		change(query)
		return w.call("GET", oidcPath+"/company/callback?"+query.Encode(), "", "Cookie", cookie, "Accept", browser)
	}
	wantReason := func(name string, answer *httptest.ResponseRecorder, reason string) {
		t.Helper()
		if got := answer.Header().Get("Location"); answer.Code != 303 || got != "/ledger/signin?refused="+reason ||
			answer.Header().Get("Referrer-Policy") != "no-referrer" || answer.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d to %q", name, answer.Code, got)
		}
	}
	answer := refuse(func(q url.Values) { q.Set("state", "A") })
	wantReason("another state", answer, "failed")
	if w.flowCookie(answer) != "" {
		t.Errorf("the flow goes on: %v", answer.Header()["Set-Cookie"])
	}
	w.provider.Claims = func(c map[string]any) { c["email"] = "eve@example.com" }
	wantReason("an unknown person", refuse(func(url.Values) {}), "no-account")
	for range 30 {
		answer = refuse(func(q url.Values) { q.Set("state", "A") })
	}
	wantReason("too many", answer, "too-many")
	w.provider.Close()
	closed := newOpenIDWorldOn(t, w.provider)
	wantReason("no provider", closed.call("GET", oidcPath+"/company/start", "", "Accept", browser), "unavailable")
}

func claim(name string, value any) func(*openIDWorld, *string, url.Values) {
	return func(w *openIDWorld, _ *string, _ url.Values) {
		w.provider.Claims = func(c map[string]any) { c[name] = value }
	}
}

// A session without a proof gets none when the account's address or organization changes.
func TestOpenIDWithoutProof(t *testing.T) {
	w := newOpenIDWorld(t)
	w.link()
	blue := w.organization("blue")
	w.provider.Claims = func(c map[string]any) { c["email"], c["auth_time"] = email, nil }
	b := w.browser(1)
	cookie, query := w.begin("")
	b.keep(w.session(w.finish(cookie, query)))
	answers(t, "a passkey", b.ask("POST", passkeysPath+"/begin", ""), 401, stepUpDue)
	w.decode(b.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+blue.OrganizationID+`"}`), 200, &signedIn{})
	answers(t, "a passkey after a switch", b.ask("POST", passkeysPath+"/begin", ""), 401, stepUpDue)
	w.decode(b.ask("POST", stepUp, `{"password":"`+password+`"}`), 200, &signedIn{})
	b.register("laptop")
}

// Failed sign-ins from one network are limited, those from another are not, and successful ones do not count.
func TestOpenIDAttempts(t *testing.T) {
	w := newOpenIDWorld(t)
	w.link()
	for range 40 {
		cookie, query := w.begin("")
		if answer := w.finish(cookie, query); answer.Code != 303 {
			t.Fatalf("got %d %s", answer.Code, answer.Body)
		}
	}
	from := func(address string) int {
		return w.callFrom(address, "GET", oidcPath+"/company/callback?state=a&code=b", "").Code
	}
	limited := 0
	for range 100 {
		if from("192.0.2.7") == 429 {
			limited++
		}
	}
	if limited != 70 {
		t.Errorf("%d of 100 limited, want 70", limited)
	}
	if got := from("192.0.2.8"); got != 401 {
		t.Errorf("another network: got %d", got)
	}
}

// Without configuration there are no providers.
func TestWithoutOpenID(t *testing.T) {
	w := newWorld(t)
	answers(t, "providers", w.call("GET", oidcPath, ""), 200, `{"providers":[]}`)
	answers(t, "start", w.call("GET", oidcPath+"/company/start", ""), 404, `{"error":"Not found"}`)
	answers(t, "callback", w.call("GET", oidcPath+"/company/callback", ""), 404, `{"error":"Not found"}`)
}
