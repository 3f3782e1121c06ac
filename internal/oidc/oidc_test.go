package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/openidtest"
)

// world is a relying party with two providers.
type world struct {
	t         testing.TB
	red, blue *openidtest.Provider
	party     *oidc.Party
	time      time.Time
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, red: openidtest.New(t), blue: openidtest.New(t), time: now()}
	w.blue.Clock = now
	w.red.Clock = func() time.Time { return w.time }
	w.party = w.open(w.configured(w.red, "red"), w.configured(w.blue, "blue"))
	return w
}

func (w *world) configured(p *openidtest.Provider, name string) oidc.Provider {
	return oidc.Provider{Name: name, Issuer: p.URL, ClientID: openidtest.ClientID, ClientSecret: openidtest.ClientSecret}
}

func (w *world) open(providers ...oidc.Provider) *oidc.Party {
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		w.t.Fatal(err)
	}
	party, err := oidc.New(oidc.Options{Providers: providers, Sealer: keyring, Clock: func() time.Time { return w.time },
		Callback: func(name string) string { return "https://log.example/v1/id/auth/oidc/" + name + "/callback" }})
	if err != nil {
		w.t.Fatal(err)
	}
	return party
}

func (w *world) start(name string) oidc.Started {
	w.t.Helper()
	s, err := w.party.Start(w.t.Context(), name, "/approvals/7?x=1", false)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	s := w.start("red")
	who, path, err := w.party.Finish(t.Context(), "red", s.Cookie, w.red.Authorize(s.URL))
	want := oidc.Person{Provider: "red", Issuer: w.red.URL, Subject: "subject-1", Email: "ann@example.com", Name: "Ann",
		AuthenticatedAt: time.Unix(w.red.Clock().Unix(), 0)}
	if err != nil || who != want || path != "/approvals/7?x=1" {
		t.Errorf("got %+v, %q, %v, want %+v", who, path, err, want)
	}
	if got := strings.Join(w.party.Names(), " "); got != "red blue" {
		t.Errorf("names: got %s", got)
	}
}

// The address comes from UserInfo if the ID token has no verified one. If there is none, the reason is named.
func TestUserInfo(t *testing.T) {
	without := func(c map[string]any) { c["email"], c["email_verified"] = nil, nil }
	unverified := func(c map[string]any) { c["email_verified"] = false }
	keep := func(map[string]any) {}
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for name, tt := range map[string]struct {
		token, info func(map[string]any)
		broken      func(http.ResponseWriter)
		email       string
		message     string // refusal of a person without an address
		cause       string // logged cause
	}{
		"only in UserInfo":        {without, keep, nil, "ann@example.com", "", ""},
		"verified there":          {unverified, keep, nil, "ann@example.com", "", ""},
		"as text":                 {without, func(c map[string]any) { c["email_verified"] = "true" }, nil, "ann@example.com", "", ""},
		"the token's counts":      {keep, func(c map[string]any) { c["email"] = "eve@example.com" }, nil, "ann@example.com", "", ""},
		"another sub":             {without, func(c map[string]any) { c["sub"] = "subject-2" }, nil, "", "could not be reached", "a different sub"},
		"no sub":                  {without, func(c map[string]any) { c["sub"] = nil }, nil, "", "could not be reached", "a different sub"},
		"unverified everywhere":   {unverified, unverified, nil, "", "has not verified", "UserInfo has an email without email_verified"},
		"nowhere":                 {without, without, nil, "", "returned no e-mail address", "UserInfo has no email"},
		"no endpoint":             {without, nil, nil, "", "returned no e-mail address", "the ID token has no email"},
		"unverified, no endpoint": {unverified, nil, nil, "", "has not verified", "the ID token has an email without email_verified"},
		"an error":                {without, nil, status(500, "secret of the provider"), "", "could not be reached", "status 500 Internal Server Error"},
		"a refusal":               {without, nil, status(403, "secret of the provider"), "", "could not be reached", "status 403 Forbidden"},
		"a cut connection":        {without, nil, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "", "could not be reached", "no response: EOF"},
		"no JSON":                 {without, nil, status(200, "<html>secret of the provider"), "", "could not be reached", "no usable response"},
		"another type":            {without, nil, status(200, `{"sub":"subject-1","email":7}`), "", "could not be reached", "UserInfo"},
		"too large":               {without, nil, status(200, `{"sub":"subject-1","email":"`+strings.Repeat("a", 2<<20)+`"}`), "", "could not be reached", "no usable response"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.red.Claims, w.red.UserInfo, w.red.Broken = tt.token, tt.info, tt.broken
			s := w.start("red")
			who, _, err := w.party.Finish(t.Context(), "red", s.Cookie, w.red.Authorize(s.URL))
			if err != nil || who.Subject != "subject-1" || who.Email != tt.email || (who.NoEmail == nil) != (tt.email != "") {
				t.Fatalf("got %+v, %v", who, err)
			}
			if who.NoEmail == nil {
				return
			}
			refusal := fault.Of(who.NoEmail)
			if refusal.Kind != fault.Forbidden || refusal.Code != "no_verified_address" || !strings.Contains(refusal.Message, tt.message) ||
				!strings.Contains(refusal.Err.Error(), tt.cause) || strings.Contains(refusal.Error(), "secret") {
				t.Errorf("got %v", refusal)
			}
		})
	}
}

// Each attack ends in the same refusal.
func TestRefusals(t *testing.T) {
	for name, attack := range map[string]func(w *world) (provider, cookie string, query url.Values){
		"another state": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			q := w.red.Authorize(s.URL)
			q.Set("state", "AAAA")
			return "red", s.Cookie, q
		},
		"no state": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			q := w.red.Authorize(s.URL)
			q.Del("state")
			return "red", s.Cookie, q
		},
		"the state twice": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			q := w.red.Authorize(s.URL)
			q.Add("state", q.Get("state"))
			return "red", s.Cookie, q
		},
		"the answer of another browser": func(w *world) (string, string, url.Values) {
			return "red", w.start("red").Cookie, w.red.Authorize(w.start("red").URL)
		},
		"no cookie": func(w *world) (string, string, url.Values) { return "red", "", w.red.Authorize(w.start("red").URL) },
		"a changed cookie": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			return "red", "AAAA" + s.Cookie[4:], w.red.Authorize(s.URL)
		},
		"a cookie of another service": func(w *world) (string, string, url.Values) {
			other, err := w.open(w.configured(w.red, "red")).Start(w.t.Context(), "red", "", false)
			if err != nil {
				w.t.Fatal(err)
			}
			return "red", other.Cookie, w.red.Authorize(other.URL)
		},
		"a long cookie": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			return "red", strings.Repeat("A", 1<<20), w.red.Authorize(s.URL)
		},
		"at the callback of another provider": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			return "blue", s.Cookie, w.red.Authorize(s.URL)
		},
		"a code of another provider (mix-up)": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			return "red", s.Cookie, w.blue.Authorize(s.URL)
		},
		"of a provider that knows the flow of another": func(w *world) (string, string, url.Values) {
			w.blue.Lenient = true
			s := w.start("red")
			return "blue", s.Cookie, w.blue.Authorize(s.URL)
		},
		"an answer that names another issuer": func(w *world) (string, string, url.Values) {
			w.red.Answer = func(q url.Values) { q.Set("iss", w.blue.URL) }
			s := w.start("red")
			return "red", s.Cookie, w.red.Authorize(s.URL)
		},
		"an answer without the issuer that the provider promises": func(w *world) (string, string, url.Values) {
			w.red.Metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }
			s := w.start("red")
			return "red", s.Cookie, w.red.Authorize(s.URL)
		},
		"after ten minutes": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			w.time = w.time.Add(oidc.FlowTime)
			return "red", s.Cookie, w.red.Authorize(s.URL)
		},
		"no consent": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			q := w.red.Authorize(s.URL)
			return "red", s.Cookie, url.Values{"error": {"access_denied"}, "state": q["state"]}
		},
		"no code": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			q := w.red.Authorize(s.URL)
			q.Del("code")
			return "red", s.Cookie, q
		},
		"a code twice": func(w *world) (string, string, url.Values) {
			s := w.start("red")
			q := w.red.Authorize(s.URL)
			if _, _, err := w.party.Finish(w.t.Context(), "red", s.Cookie, q); err != nil {
				w.t.Fatal(err)
			}
			return "red", s.Cookie, q
		},
		"another PKCE verifier": func(w *world) (string, string, url.Values) {
			s, other := w.start("red"), w.start("red")
			q := w.red.Authorize(s.URL)
			q.Set("state", w.red.Authorize(other.URL).Get("state"))
			return "red", other.Cookie, q
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			at, cookie, query := attack(w)
			who, path, err := w.party.Finish(t.Context(), at, cookie, query)
			checkRefused(t, who, path, err)
		})
	}
}

func checkRefused(t *testing.T, who oidc.Person, path string, err error) {
	t.Helper()
	if !fault.Is(err, fault.Unauthorized) || fault.Of(err).Message != "The sign-in failed" || who != (oidc.Person{}) || path != "" {
		t.Errorf("got %+v, %q, %v, want refused", who, path, err)
	}
	if text := fmt.Sprint(err); strings.Contains(text, "secret") || strings.Contains(text, "eyJ") {
		t.Errorf("the error has a secret: %s", text)
	}
}

// Tokens that are correctly signed but wrong, and tokens that are wrongly signed.
func TestRefusedTokens(t *testing.T) {
	set := func(member string, value any) func(*openidtest.Provider) {
		return func(p *openidtest.Provider) { p.Claims = func(c map[string]any) { c[member] = value } }
	}
	for name, change := range map[string]func(*openidtest.Provider){
		"another nonce":           set("nonce", "AAAA"),
		"no nonce":                set("nonce", nil),
		"another issuer":          set("iss", "https://other.example"),
		"another audience":        set("aud", "other-client"),
		"no audience":             set("aud", nil),
		"two audiences":           set("aud", []string{openidtest.ClientID, "other-client"}),
		"another party":           set("azp", "other-client"),
		"no subject":              set("sub", nil),
		"an empty subject":        set("sub", ""),
		"a long subject":          set("sub", strings.Repeat("s", 256)),
		"expired":                 set("exp", now().Add(-time.Second).Unix()),
		"without end":             set("exp", nil),
		"issued in the future":    set("iat", now().Add(2*time.Minute).Unix()),
		"without time of issue":   set("iat", nil),
		"not before a later time": set("nbf", now().Add(time.Hour).Unix()),
		"a name that is a number": set("name", 7),
		"algorithm none":          func(p *openidtest.Provider) { p.Unsigned() },
		"the client secret as key": func(p *openidtest.Provider) {
			p.Use("first", jose.HS256, []byte(openidtest.ClientSecret+strings.Repeat("-", 32)), nil)
		},
		"a key that is not published": func(p *openidtest.Provider) { p.Use("hidden", jose.ES256, ellipticKey(p.T), nil) },
		"another key under a published name": func(p *openidtest.Provider) {
			p.Use("first", jose.ES256, ellipticKey(p.T), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w.red)
			s := w.start("red")
			who, path, err := w.party.Finish(t.Context(), "red", s.Cookie, w.red.Authorize(s.URL))
			checkRefused(t, who, path, err)
			s = w.start("blue") // the other provider still works
			if _, _, err := w.party.Finish(t.Context(), "blue", s.Cookie, w.blue.Authorize(s.URL)); err != nil {
				t.Errorf("another provider: %v", err)
			}
		})
	}
}

func TestAddressCountsOnlyWhenVerified(t *testing.T) {
	for _, tt := range []struct {
		verified any
		want     string
	}{{true, "ann@example.com"}, {"true", "ann@example.com"}, {false, ""}, {"false", ""}, {nil, ""}, {1, ""}, {"yes", ""}} {
		w := newWorld(t)
		w.red.Claims = func(c map[string]any) { c["email_verified"] = tt.verified }
		s := w.start("red")
		who, _, err := w.party.Finish(t.Context(), "red", s.Cookie, w.red.Authorize(s.URL))
		if err != nil || who.Email != tt.want || who.Subject != "subject-1" {
			t.Errorf("email_verified %v: got %+v, %v, want %q", tt.verified, who, err, tt.want)
		}
	}
}

// A fresh sign-in requires that the provider authenticated the person again.
func TestFreshSignIn(t *testing.T) {
	for name, tt := range map[string]struct {
		fresh  bool
		before time.Duration // how long auth_time is before the begin; -1: no auth_time
		want   bool
	}{
		"at once": {true, 0, true}, "with another clock": {true, time.Minute, true}, "too long ago": {true, time.Minute + time.Second, false},
		"not refusal": {true, -1, false}, "an old one, not fresh": {false, time.Hour, true}, "not refusal, not fresh": {false, -1, true},
	} {
		w := newWorld(t)
		var want time.Time
		w.red.Claims = func(c map[string]any) { c["auth_time"] = nil }
		if tt.before >= 0 {
			want = now().Add(-tt.before)
			w.red.Claims = func(c map[string]any) { c["auth_time"] = want.Unix() }
		}
		s, err := w.party.Start(t.Context(), "red", "", tt.fresh)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(s.URL, "max_age=0"); got != tt.fresh || !strings.Contains(s.URL, "max_age=") {
			t.Errorf("%s: max_age in %s", name, s.URL)
		}
		who, _, err := w.party.Finish(t.Context(), "red", s.Cookie, w.red.Authorize(s.URL))
		if !tt.want && !fault.Is(err, fault.Unauthorized) || tt.want && (err != nil || !who.AuthenticatedAt.Equal(want)) {
			t.Errorf("%s: got %+v, %v", name, who, err)
		}
	}
}

// A provider can change its key and also its algorithm at any time.
func TestKeyRotation(t *testing.T) {
	w := newWorld(t)
	key := ellipticKey(t)
	for i, rotate := range []func(){
		func() {}, func() { w.red.RotateKey("second") }, func() { w.red.Use("third", jose.ES256, key, key.Public()) },
	} {
		rotate()
		s := w.start("red")
		if _, _, err := w.party.Finish(t.Context(), "red", s.Cookie, w.red.Authorize(s.URL)); err != nil {
			t.Errorf("key %d: %v", i, err)
		}
	}
}

// An unavailable provider is not a refusal, and nothing of its answer is stored.
func TestProviderFails(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"status 500": func(w http.ResponseWriter) { http.Error(w, "secret", http.StatusInternalServerError) },
		"status 429": func(w http.ResponseWriter) { http.Error(w, "secret", http.StatusTooManyRequests) },
		"no JSON": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "secret")
		},
		"an endless answer": func(w http.ResponseWriter) {
			for range 2048 {
				fmt.Fprint(w, strings.Repeat("secret", 200))
			}
		},
		"a redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/secret")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.red.Token = func(rw http.ResponseWriter) bool { answer(rw); return true }
			s := w.start("red")
			_, _, err := w.party.Finish(t.Context(), "red", s.Cookie, w.red.Authorize(s.URL))
			if !fault.Is(err, fault.Unavailable) || strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
	w := newWorld(t)
	w.red.Close()
	if _, err := w.party.Start(t.Context(), "red", "", false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("closed provider: got %v", err)
	}
	if _, err := w.party.Start(t.Context(), "blue", "", false); err != nil {
		t.Errorf("the other provider: %v", err)
	}
	if _, err := w.party.Start(t.Context(), "green", "", false); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown provider: got %v", err)
	}
}

// A discovery document of another issuer is refused: otherwise its keys would count for this issuer.
func TestDiscoveryOfAnotherIssuer(t *testing.T) {
	w := newWorld(t)
	w.red.Metadata = func(m map[string]any) { m["issuer"] = w.blue.URL }
	if _, err := w.party.Start(t.Context(), "red", "", false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

// A provider cannot exhaust the memory: the client stops reading after a megabyte.
func TestEndlessDiscovery(t *testing.T) {
	w := newWorld(t)
	sent := make(chan int, 1)
	w.red.Endless = func(rw http.ResponseWriter) {
		n := 0
		for range 64 << 10 { // 64 MiB
			written, err := rw.Write(make([]byte, 1<<10))
			if n += written; err != nil {
				break
			}
		}
		sent <- n
	}
	if _, err := w.party.Start(t.Context(), "red", "", false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if n := <-sent; n > 32<<20 { // the buffers of the connection take some megabytes
		t.Errorf("the provider could send %d bytes", n)
	}
}

// No text redirects a browser to another site.
func TestOpenRedirects(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]bool{
		"": true, "/": true, "/approvals/7": true, "/a?b=c#d": true,
		"//evil.example": false, "/\\evil.example": false, "\\\\evil.example": false, "https://evil.example": false,
		"/\t/evil.example": false, "/\n/evil.example": false, "javascript:alert(1)": false, "evil.example": false,
		"/%zz": false, " /": false, "/ü": false, "/" + strings.Repeat("a", 1024): false,
	} {
		_, err := w.party.Start(t.Context(), "red", path, false)
		if got := err == nil; got != want || !want && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %v, want allowed %v", path, err, want)
		}
	}
}

func TestConfiguration(t *testing.T) {
	good := oidc.Provider{Name: "red", Issuer: "https://id.example", ClientID: "c"}
	for name, tt := range map[string]struct {
		change func(*oidc.Provider)
		want   string
	}{
		"good":          {func(*oidc.Provider) {}, ""},
		"loopback":      {func(p *oidc.Provider) { p.Issuer = "http://127.0.0.1:9" }, ""},
		"name":          {func(p *oidc.Provider) { p.Name = "Red/.." }, "name must be 1 to 32"},
		"client id":     {func(p *oidc.Provider) { p.ClientID = "" }, "client_id is missing"},
		"plain http":    {func(p *oidc.Provider) { p.Issuer = "http://id.example" }, "must be an https URL"},
		"query":         {func(p *oidc.Provider) { p.Issuer = "https://id.example?a=b" }, "without query"},
		"no host":       {func(p *oidc.Provider) { p.Issuer = "https:" }, "must be a URL"},
		"user and host": {func(p *oidc.Provider) { p.Issuer = "https://a@id.example" }, "must be a URL"},
	} {
		p := good
		tt.change(&p)
		_, err := oidc.New(oidc.Options{Providers: []oidc.Provider{p}})
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	if _, err := oidc.New(oidc.Options{Providers: []oidc.Provider{good, good}}); err == nil {
		t.Error("a name twice: no error")
	}
	if _, err := oidc.New(oidc.Options{Providers: make([]oidc.Provider, 17)}); err == nil {
		t.Error("17 providers: no error")
	}
}

// now is the time of the tests.
func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func ellipticKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
