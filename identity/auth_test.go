package identity_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/identity"
)

const (
	login  = "/v1/id/auth/login"
	logout = "/v1/id/auth/logout"
	me     = "/v1/id/auth/me"
)

type place struct {
	OrganizationID string `json:"organization_id"`
	Slug           string `json:"slug"`
	Name           string `json:"name"`
	Role           string `json:"role"`
	Offered        bool   `json:"offered"`
}

type signedIn struct {
	Account struct {
		AccountID   string `json:"account_id"`
		Email       string `json:"email"`
		DisplayName string `json:"display_name"`

		ApprovalMail bool `json:"approval_mail"`
		WeeklyMail   bool `json:"weekly_mail"`
		TimesInUTC   bool `json:"times_in_utc"`
		EmailProved  bool `json:"email_proved"`
	} `json:"account"`
	User struct {
		MembershipID string `json:"membership_id"`
		Role         string `json:"role"`

		Permissions []string `json:"permissions"`
	} `json:"user"`
	Organization  place   `json:"organization"`
	Organizations []place `json:"organizations"`
	MayFound      bool    `json:"may_found"`
}

func (w *world) signIn(email, password string, header ...string) *httptest.ResponseRecorder {
	return w.call("POST", login, `{"email":"`+email+`","password":"`+password+`"}`, header...)
}

func (w *world) signedIn(email, password string) signedIn {
	w.t.Helper()
	var s signedIn
	w.decode(w.signIn(email, password), 200, &s)
	return s
}

// cookie returns the Cookie header for the cookies that an answer sets.
func (w *world) cookie(answer *httptest.ResponseRecorder) string {
	w.t.Helper()
	cookies := answer.Result().Cookies()
	if len(cookies) == 2 && cookies[1].Name == cookies[0].Name+"_browser" {
		cookies = cookies[:1]
	}
	if len(cookies) != 1 || cookies[0].Name != "__Host-agentledger" && cookies[0].Name != "agentledger_session" {
		w.t.Fatalf("got cookies %v and %d %s", cookies, answer.Code, answer.Body)
	}
	return cookies[0].Name + "=" + cookies[0].Value
}

func TestLogin(t *testing.T) {
	w := newWorld(t)
	red := w.organization("red")
	w.Pass(time.Minute)
	blue := w.organization("blue")
	answer := w.signIn("Ann@example.com", password)
	var got signedIn
	w.decode(answer, 200, &got)
	places := []place{{red.OrganizationID, "red", "RED", "owner", false}, {blue.OrganizationID, "blue", "BLUE", "owner", false}}
	if got.Account.Email != email || got.Account.AccountID == "" || got.User.MembershipID != red.MembershipID || got.User.Role != "owner" ||
		got.Organization != places[0] || len(got.Organizations) != 2 || got.Organizations[0] != places[0] || got.Organizations[1] != places[1] {
		t.Errorf("got %+v", got)
	}
	header := answer.Header().Get("Set-Cookie")
	token := strings.TrimPrefix(w.cookie(answer), "__Host-agentledger=")
	if want := "__Host-agentledger=" + token + "; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax"; header != want || len(token) != 43 {
		t.Errorf("got %q, want %q", header, want)
	}
	var again signedIn
	w.decode(w.call("GET", me, "", "Cookie", w.cookie(answer)), 200, &again)
	if again.Organization != got.Organization || again.User.MembershipID != got.User.MembershipID ||
		!slices.Equal(again.User.Permissions, got.User.Permissions) || !slices.Contains(again.User.Permissions, "own") || again.Account != got.Account {
		t.Errorf("me: got %+v, want %+v", again, got)
	}
}

func TestCookieOverHTTP(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.PublicURL = "http://127.0.0.1:8080" })
	w.organization("red")
	if got := w.signIn(email, password).Header().Get("Set-Cookie"); strings.Contains(got, "Secure") {
		t.Errorf("got %q", got)
	}
}

func TestLoginIntoAnOrganization(t *testing.T) {
	w := newWorld(t)
	red := w.organization("red")
	w.Pass(time.Minute)
	blue := w.organization("blue")
	other := w.platform("POST", organizations, `{"name":"X","slug":"green","admin_email":"bob@example.com"}`)
	var green made
	w.decode(other, 201, &green)
	with := func(organization string) *httptest.ResponseRecorder {
		return w.call("POST", login, `{"email":"`+email+`","password":"`+password+`","organization_id":"`+organization+`"}`)
	}
	for _, m := range []made{red, blue} {
		answer := with(strings.ToUpper(m.OrganizationID))
		var got signedIn
		w.decode(answer, 200, &got)
		if got.Organization.Slug != m.Slug || got.User.MembershipID != m.MembershipID {
			t.Errorf("got %+v, want %s", got, m.Slug)
		}
		// The session belongs to that organization only.
		session, err := w.accounts.Session(t.Context(), strings.TrimPrefix(w.cookie(answer), "__Host-agentledger="))
		if err != nil {
			t.Fatal(err)
		}
		if tenant, err := w.orgs.ByID(t.Context(), w.State(t, session.Tenant).Identity().Organization); err != nil || tenant != session.Tenant ||
			w.State(t, session.Tenant).Identity().Organization.String() != m.OrganizationID {
			t.Errorf("session of tenant %d, %v", session.Tenant, err)
		}
	}
	for name, organization := range map[string]string{"another's": green.OrganizationID, "unknown": "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"} {
		answer := with(organization)
		answers(t, name, answer, 403, refusal("Not a member of the organization"))
		if len(answer.Result().Cookies()) != 0 {
			t.Errorf("%s: a cookie was set", name)
		}
	}
	answers(t, "malformed", with("red"), 422, refusal(`Member \"organization_id\" has another type or form`))
}

func TestAccountOfNoOrganization(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.accounts.Ensure(t.Context(), email, password); err != nil {
		t.Fatal(err)
	}
	answers(t, "no organization", w.signIn(email, password), 403, refusal("Not a member of the organization"))
}

func TestLoginRefuses(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	for name, body := range map[string]string{
		"wrong password":                     `{"email":"ann@example.com","password":"wrong password"}`,
		"no password":                        `{"email":"ann@example.com"}`,
		"unknown address":                    `{"email":"eve@example.com","password":"` + password + `"}`,
		"malformed address":                  `{"email":"ann","password":"` + password + `"}`,
		"nothing":                            `{}`,
		"wrong password for an organization": `{"email":"ann@example.com","password":"x","organization_id":"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"}`,
	} {
		answer := w.call("POST", login, body)
		answers(t, name, answer, 401, refusal("Invalid e-mail address or password"))
		if len(answer.Result().Cookies()) != 0 {
			t.Errorf("%s: a cookie was set", name)
		}
		w.Pass(time.Minute)
	}
	answers(t, "unknown member", w.call("POST", login, `{"user":"ann"}`), 422, refusal(`Member \"user\" is not known`))
	answers(t, "media type", w.signIn(email, password, "Content-Type", "application/x-www-form-urlencoded"), 415, refusal("Content-Type must be application/json"))
}

func TestLoginIsRateLimited(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	for range 10 {
		answers(t, "wrong", w.signIn(email, "wrong password"), 401, refusal("Invalid e-mail address or password"))
	}
	answer := w.signIn(email, password)
	answers(t, "limited", answer, 429, `{"error":"Too many sign-in attempts, try again later","code":"rate_limited"}`)
	if got := answer.Header().Get("Retry-After"); got != "30" {
		t.Errorf("Retry-After: got %q, want 30", got)
	}
	w.Pass(30 * time.Second)
	w.signedIn(email, password)
}

// Behind a proxy, attempts are counted by the address that the proxy reports.
func TestAddress(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) {
		o.Address = func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.Header.Get("X-Real-Ip")) }
	})
	attempt := func(i int, from string) int {
		return w.signIn("e"+strings.Repeat("e", i)+"@example.com", "wrong password", "X-Real-Ip", from).Code
	}
	for i := range 100 {
		if got := attempt(i, "192.0.2.1"); got != 401 {
			t.Fatalf("attempt %d: got %d, want 401", i, got)
		}
	}
	if got := attempt(100, "192.0.2.1"); got != 429 {
		t.Errorf("got %d, want 429", got)
	}
	if got := attempt(100, "192.0.2.2"); got != 401 {
		t.Errorf("another address: got %d, want 401", got)
	}
}

func TestLogout(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	first, second := w.cookie(w.signIn(email, password)), w.cookie(w.signIn(email, password))
	if answer := w.call("GET", me, "", "Cookie", first); answer.Code != 200 {
		t.Fatalf("got %d", answer.Code)
	}
	answer := w.call("POST", logout, "", "Cookie", first)
	answers(t, "logout", answer, 204, "")
	if got, want := answer.Header().Get("Set-Cookie"), "__Host-agentledger=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	answers(t, "closed", w.call("GET", me, "", "Cookie", first), 401, refusal("Not signed in"))
	if answer := w.call("GET", me, "", "Cookie", second); answer.Code != 200 {
		t.Errorf("the other session: got %d", answer.Code)
	}
	answers(t, "logout again", w.call("POST", logout, "", "Cookie", first), 204, "")
	answers(t, "logout without a session", w.call("POST", logout, ""), 204, "")
}

func TestMeRefuses(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	cookie := w.cookie(w.signIn(email, password))
	for name, header := range map[string][]string{
		"none":       {},
		"empty":      {"Cookie", "__Host-agentledger="},
		"unknown":    {"Cookie", "__Host-agentledger=" + strings.Repeat("a", 43)},
		"other name": {"Cookie", strings.Replace(cookie, "__Host-agentledger", "session", 1)},
		"old name":   {"Cookie", strings.Replace(cookie, "__Host-agentledger", "agentledger_session", 1)},
		"bearer":     {"Authorization", "Bearer " + strings.TrimPrefix(cookie, "__Host-agentledger=")},
	} {
		answers(t, name, w.call("GET", me, "", header...), 401, refusal("Not signed in"))
	}
	w.Pass(12 * time.Hour)
	answers(t, "over", w.call("GET", me, "", "Cookie", cookie), 401, refusal("Not signed in"))
}

// A page of another origin can neither sign a browser in nor out. The service's own pages and programs can.
func TestOrigins(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	for name, tc := range map[string]struct {
		header []string
		want   int
	}{
		"program":            {nil, 200},
		"same origin":        {[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		"public URL":         {[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://log.example"}, 200},
		"another site":       {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403},
		"another site, old":  {[]string{"Origin", "https://evil.example"}, 403},
		"neighbour's origin": {[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://other.log.example"}, 403},
	} {
		if got := w.signIn(email, password, tc.header...); got.Code != tc.want {
			t.Errorf("login, %s: got %d %s, want %d", name, got.Code, got.Body, tc.want)
		}
		if got := w.call("POST", logout, "", tc.header...); (got.Code == 403) != (tc.want == 403) {
			t.Errorf("logout, %s: got %d", name, got.Code)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]identity.Options{
		"no secret":  {PublicURL: publicURL},
		"no URL":     {PlatformSecret: platformSecret},
		"broken URL": {PlatformSecret: platformSecret, PublicURL: "http://[::1"},
	} {
		if _, err := identity.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// No call writes a secret to the log.
func TestLogHoldsNoSecret(t *testing.T) {
	w := newWorld(t)
	m := w.organization("red")
	answer := w.signIn(email, password)
	cookie := w.cookie(answer)
	token := strings.TrimPrefix(cookie, "__Host-agentledger=")
	w.call("GET", me+"?token="+token, "")
	w.signIn(email, password+"x")
	w.call("POST", login, `{"password":["`+password+`"]}`)
	w.call("POST", organizations, "", "X-Platform-Secret", platformSecret+"x")
	w.call("GET", "/"+token, "")
	w.platform("POST", "/v1/id/platform/accounts/password", `{"email":"ann@example.com","password":"`+password+`"}`)
	w.call("POST", logout, "", "Cookie", cookie)
	w.Store.Break()
	w.signIn(email, password)
	w.call("GET", me, "", "Cookie", cookie)
	w.platform("POST", organizations, `{"name":"X","slug":"green","admin_email":"bob@example.com","admin_password":"`+password+`"}`)
	log := w.log.String()
	if strings.Count(log, "\n") != 13 || !strings.Contains(log, `"level":"WARN"`) {
		t.Errorf("got %d lines: %s", strings.Count(log, "\n"), log)
	}
	for name, secret := range map[string]string{
		"platform secret": platformSecret, "password": password, "session": token, "private key": m.Agent.PrivateKey,
		"ingest key": m.IngestKey.Secret[len(m.IngestKey.Secret)-60:], "e-mail": email,
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds the %s: %s", name, log)
		}
	}
}
