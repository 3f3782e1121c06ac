package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// Cross-site forms sign nobody in or out, set no password and accept nothing.
func TestCrossSiteEntryForms(t *testing.T) {
	t.Parallel()
	box := servicetest.NewMailbox(t)
	s := servicetest.New(t, "--smtp", box.URL)
	ann, empty := s.SignIn(s.Red.Owner), servicetest.Empty(t)
	s.Stranger().Post("/forgot-password", "do", "ask", "email", s.Blue.Owner)
	reset := box.AwaitToken(s.Blue.Owner)
	ann.Call(http.MethodPost, "/v1/id/orgs/"+s.Red.ID+"/invitations", map[string]string{"email": "carl@new.example", "role": "admin"}, nil)
	invitation := box.AwaitToken("carl@new.example")
	for _, form := range [][]string{
		{"/signin", "do", "sign-in", "email", s.Blue.Owner, "password", servicetest.Password},
		{"/signin/second", "do", "recovery-code", "code", "x"},
		{"/signout"},
		{"/forgot-password", "do", "ask", "email", s.Red.Owner},
		{"/reset-password", "do", "reset", "token", reset, "password", newPassword},
		{"/invitation", "do", "accept", "token", invitation, "password", servicetest.Password},
		{"/confirm-email", "do", "confirm", "token", "x"},
	} {
		got := ann.PostFromAnotherSite(form[0], form[1:]...)
		shows(t, form[0], got, http.StatusForbidden, "Request of another origin")
		if len(got.Header["Set-Cookie"]) > 0 {
			t.Errorf("%s sets %q", form[0], got.Header["Set-Cookie"])
		}
	}
	shows(t, "still signed in", ann.Get("/console"), http.StatusOK, s.Red.Owner)
	shows(t, "the invitation is open", s.Stranger().Post("/invitation", "do", "open", "token", invitation), http.StatusOK, "Create the account and accept")
	shows(t, "the password is as it was", s.SignIn(s.Blue.Owner).Get("/console"), http.StatusOK)

	_, token, _ := strings.Cut(empty.SetupURL, "#token=")
	setup := []string{"do", "setup", "token", token, "name", "Eve", "slug", "eve", "email", "eve@evil.example", "password", newPassword}
	shows(t, "setup", empty.Stranger().PostFromAnotherSite("/setup", setup...), http.StatusForbidden, "Request of another origin")
	shows(t, "the token is good", empty.Stranger().Post("/setup", setup...), http.StatusOK, "is ready")
}

// The setup without JavaScript: each rejection keeps the fields, and the token works once.
func TestSetup(t *testing.T) {
	t.Parallel()
	s := servicetest.Empty(t)
	_, token, _ := strings.Cut(s.SetupURL, "/setup#token=")
	ann := s.Stranger()
	shows(t, "the page", ann.Get("/setup"), http.StatusOK, "Token of the link", "Set up the service")
	form := func(token, slug, password string) []string {
		return []string{"do", "setup", "token", token, "name", `Acme <script>"`, "slug", slug, "email", "ann@acme.example", "password", password}
	}
	shows(t, "a wrong token", ann.Post("/setup", form("x", "acme", newPassword)...), http.StatusUnauthorized, "Invalid setup token", "Acme &lt;script&gt;&#34;")
	shows(t, "a common password", ann.Post("/setup", form(token, "acme", "password123")...), http.StatusUnprocessableEntity, "most common", `value="`+token+`"`)
	shows(t, "a bad name", ann.Post("/setup", form(token, "-", newPassword)...), http.StatusUnprocessableEntity, "slug must be", `value="-"`)
	shows(t, "a broken passkey", ann.Post("/setup", append(form(token, "acme", ""), "passkey", "{")...), http.StatusUnprocessableEntity, "can&#39;t be read")
	shows(t, "two ways", ann.Post("/setup", append(form(token, "acme", newPassword), "passkey", "{}")...), http.StatusUnprocessableEntity, "and not both")
	made := ann.Post("/setup", form(token, "acme", newPassword)...)
	shows(t, "made", made, http.StatusOK, "<bdi>Acme &lt;script&gt;&#34; is ready</bdi>", "apl_live_", "<bdi>ann@acme.example</bdi>")
	if made.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v", made.Header)
	}
	shows(t, "inside", ann.Get("/console"), http.StatusOK, "Latest events")
	shows(t, "once more", s.Stranger().Post("/setup", form(token, "other", newPassword)...), http.StatusConflict, "already set up")
}

// evilSite serves a page of another site.
func evilSite(t *testing.T, markup string) string {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><html data-done="yes"><title>evil</title>%s`, markup)
	}))
	t.Cleanup(site.Close)
	return site.URL
}

// formTo returns the markup of a form that a page of another site submits.
func formTo(action string, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<form method="post" action="%s">`, html.EscapeString(action))
	for i := 0; i < len(fields); i += 2 {
		fmt.Fprintf(&b, `<input name="%s" value="%s">`, fields[i], html.EscapeString(fields[i+1]))
	}
	return b.String() + `<button id="send">x</button></form>`
}

// A real browser keeps other sites out, does not send the address to the next page, and shows nothing after the
// sign-out.
func TestGuardsInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	b := s.Browser()
	b.SignIn(s.Red.Owner)

	b.Open(evilSite(t, `<iframe src="`+s.URL+`/account"></iframe>`))
	messages := ""
	for end := time.Now().Add(time.Minute); messages == "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		messages = strings.Join(b.Messages(), "\n")
	}
	if !strings.Contains(messages, "frame-ancestors") {
		t.Errorf("another site shows the account in a frame: %q", messages)
	}
	for _, form := range []string{
		formTo(s.URL + "/signout"),
		formTo(s.URL+"/signin", "do", "sign-in", "email", s.Blue.Owner, "password", servicetest.Password),
		formTo(s.URL+"/account", "do", "profile", "display_name", "Eve"),
	} {
		b.Open(evilSite(t, form))
		b.Press("#send")
	}
	b.Visit("/account")
	if got := b.Text("#nav"); !strings.Contains(got, s.Red.Owner) {
		t.Errorf("another site changed the session: %q", got)
	}
	var name string
	b.Must(`return document.querySelector("[name=display_name]").value`, &name)
	if name != "" {
		t.Errorf("another site changed the name: %q", name)
	}

	b.Press("form.me button")
	b.Must(`document.documentElement.dataset.old = "yes"; history.back();`, nil)
	b.AwaitText("Forgot the password?")
	if got := b.ShownText(); strings.Contains(got, s.Red.Owner) || strings.Contains(got, "Your account") {
		t.Errorf("the page from before the sign-out is shown: %s", got)
	}

	b.Visit("/reset-password#token=a-secret")
	b.Press(`main a[href="/forgot-password"]`)
	var referrer string
	b.Must(`return document.referrer`, &referrer)
	if referrer != "" {
		t.Errorf("the referrer of the next page is %q", referrer)
	}
}

// The script moves a link's token from the address into the form, also through a sign-in.
func TestLinksInChromium(t *testing.T) {
	t.Parallel()
	box := servicetest.NewMailbox(t)
	s := servicetest.New(t, "--smtp", box.URL)
	b := s.Browser()
	b.AddAuthenticator()
	owner := s.SignIn(s.Red.Owner)
	invite := func(email string) string {
		owner.Call(http.MethodPost, "/v1/id/orgs/"+s.Red.ID+"/invitations", map[string]string{"email": email, "role": "approver"}, nil)
		return "/invitation#token=" + box.AwaitToken(email)
	}

	// An existing account signs in first.
	b.Open(s.URL + invite(s.Blue.Owner))
	b.AwaitText("already has an account")
	b.Press("a[data-token]")
	b.Fill("email", s.Blue.Owner)
	b.Fill("password", servicetest.Password)
	b.Start(`button[value="sign-in"]`)
	b.AwaitText("Accept as")
	var address string
	b.Must(`return location.href`, &address)
	if address != s.URL+"/invitation" {
		t.Errorf("the address is %s", address)
	}
	b.Press(`button[value="accept"]`)
	if got := b.Text("#nav"); !strings.Contains(got, s.Blue.Owner) {
		t.Errorf("got %q", got)
	}
	b.Press("form.me button")

	// A new user has a passkey instead of a password.
	b.Open(s.URL + invite("carl@new.example"))
	b.AwaitText("Accept with a passkey instead of a password")
	b.Fill("display_name", "Carl")
	b.Start("button[data-passkey]")
	b.AwaitText("Latest events")
	b.Press("form.me button")
	b.Start("#passkey")
	b.AwaitText("Latest events")
	b.Press("form.me button")

	// A new password by a mailed link.
	s.Stranger().Post("/forgot-password", "do", "ask", "email", s.Blue.Owner)
	b.Visit("/reset-password#token=" + box.AwaitToken(s.Blue.Owner))
	b.Fill("password", newPassword)
	b.Press(`button[value="reset"]`)
	if got := b.Text("#notice"); got != "The password is set: sign in with it." {
		t.Errorf("got %q", got)
	}
	b.WantQuiet()
}
