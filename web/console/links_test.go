package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A user sets a new password by a mailed link, without JavaScript.
func TestForgottenPassword(t *testing.T) {
	t.Parallel()
	box := servicetest.NewMailbox(t)
	s := servicetest.New(t, "--smtp", box.URL)
	ann, old := s.Stranger(), s.SignIn(s.Red.Owner)
	shows(t, "ask", ann.Get("/forgot-password"), http.StatusOK, "E-mail address")
	shows(t, "no address", ann.Post("/forgot-password", "do", "ask", "email", "ann"), http.StatusUnprocessableEntity, "malformed", `value="ann"`)
	redirects(t, "an unknown address", ann.Post("/forgot-password", "do", "ask", "email", "eve@red.example"), "/forgot-password?notice=reset-asked")
	redirects(t, "a known address", ann.Post("/forgot-password", "do", "ask", "email", s.Red.Owner), "/forgot-password?notice=reset-asked")
	shows(t, "asked", ann.Get("/forgot-password?notice=reset-asked"), http.StatusOK, "If the address has an account")
	token := box.AwaitToken(s.Red.Owner)

	shows(t, "the link's page", ann.Get("/reset-password"), http.StatusOK, "Token of the link")
	shows(t, "a wrong token", ann.Post("/reset-password", "do", "reset", "token", token+"x", "password", newPassword), http.StatusUnprocessableEntity, "expired: request another")
	weak := ann.Post("/reset-password", "do", "reset", "token", token, "password", "password123")
	shows(t, "a common password", weak, http.StatusUnprocessableEntity, "most common", `value="`+token+`"`)
	if strings.Contains(weak.Body, "password123") {
		t.Errorf("the page contains the password: %s", weak.Body)
	}
	redirects(t, "reset", ann.Post("/reset-password", "do", "reset", "token", token, "password", newPassword), "/signin?notice=password-set")
	redirects(t, "the older session", old.Get("/console"), "/signin?return=%2Fconsole")
	shows(t, "once more", ann.Post("/reset-password", "do", "reset", "token", token, "password", newPassword), http.StatusUnprocessableEntity, "expired: request another")
	redirects(t, "sign in", ann.Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", newPassword), "/console")
}

// A mailed link changes the address of an account only in a session of that account.
func TestNewAddress(t *testing.T) {
	t.Parallel()
	box := servicetest.NewMailbox(t)
	s := servicetest.New(t, "--smtp", box.URL)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	shows(t, "no address", ann.Post("/account", "do", "email", "email", "new"), http.StatusUnprocessableEntity, "malformed", `value="new"`)
	redirects(t, "ask", ann.Post("/account", "do", "email", "email", "ann@new.example"), "/account?notice=email-asked")
	token := box.AwaitToken("ann@new.example")
	redirects(t, "a stranger", s.Stranger().Get("/confirm-email"), "/signin?return=%2Fconfirm-email")
	if got := bob.Post("/confirm-email", "do", "confirm", "token", token); got.Status < http.StatusBadRequest {
		t.Errorf("another account: got %d", got.Status)
	}
	shows(t, "the link's page", ann.Get("/confirm-email"), http.StatusOK, "Token of the link", s.Red.Owner)
	redirects(t, "confirm", ann.Post("/confirm-email", "do", "confirm", "token", token), "/account?notice=email-changed")
	shows(t, "the new address", ann.Get("/account"), http.StatusOK, "ann@new.example")
	if got := bob.Get("/account").Body; !strings.Contains(got, s.Blue.Owner) || strings.Contains(got, "new.example") {
		t.Errorf("got %s", got)
	}
}

// Accounts from before the service had mail are unproved. The first proof by mail requires a new password, even in a
// session of the account, and ends all existing sessions.
func TestFirstProof(t *testing.T) {
	t.Parallel()
	const note = "Nobody has proved"
	s := servicetest.New(t)
	carl, dora := s.Red.Join("carl", "auditor"), s.Red.Join("dora", "auditor")
	box := servicetest.NewMailbox(t)
	s.Restart("--smtp", box.URL)
	ended := func(email string, before *servicetest.Person) {
		t.Helper()
		redirects(t, "another session", before.Get("/account"), "/signin?return=%2Faccount")
		shows(t, "the old password", s.Stranger().Post("/signin", "do", "sign-in", "email", email, "password", servicetest.Password),
			http.StatusUnauthorized, "Invalid e-mail address or password")
		redirects(t, "the new password", s.Stranger().Post("/signin", "do", "sign-in", "email", email, "password", newPassword), "/console")
	}

	person, before := s.SignIn(carl), s.SignIn(carl)
	s.SignIn(s.Blue.Owner).Call(http.MethodPost, "/v1/id/orgs/"+s.Blue.ID+"/invitations", map[string]string{"email": carl, "role": "auditor"}, nil)
	token := box.AwaitToken(carl)
	opened := person.Post("/invitation", "do", "open", "token", token)
	shows(t, "the invitation", opened, http.StatusOK, note, `name="password"`, "Set the password and accept")
	if strings.Contains(opened.Body, "Accept as") || strings.Contains(opened.Body, "for another address") {
		t.Errorf("got %s", opened.Body)
	}
	if got := s.Stranger().Post("/invitation", "do", "open", "token", token).Body; strings.Contains(got, note) {
		t.Errorf("the page reveals the account to a visitor: %s", got)
	}
	shows(t, "no password", person.Post("/invitation", "do", "accept", "token", token), http.StatusUnprocessableEntity,
		"choose a new password", "Set the password and accept", `value="`+token+`"`)
	shows(t, "nothing changed", before.Get("/account"), http.StatusOK, note)
	redirects(t, "accept", person.Post("/invitation", "do", "accept", "token", token, "display_name", "Carl", "password", newPassword), "/console?notice=joined")
	shows(t, "inside", person.Get("/account"), http.StatusOK, `value="Carl"`, "Blue")
	ended(carl, before)

	person, before = s.SignIn(dora), s.SignIn(dora)
	redirects(t, "ask", person.Post("/account", "do", "email", "email", dora), "/account?notice=email-asked")
	token = box.AwaitToken(dora)
	shows(t, "the link's page", person.Get("/confirm-email"), http.StatusOK, note, `name="password"`)
	shows(t, "no password", person.Post("/confirm-email", "do", "confirm", "token", token), http.StatusUnprocessableEntity, "choose a new password", `value="`+token+`"`)
	redirects(t, "confirm", person.Post("/confirm-email", "do", "confirm", "token", token, "password", newPassword), "/account?notice=email-changed")
	if got := person.Get("/account").Body; strings.Contains(got, note) || strings.Contains(got, `value="dora"`) {
		t.Errorf("got %s", got)
	}
	if got := person.Get("/confirm-email").Body; strings.Contains(got, `name="password"`) {
		t.Errorf("a proved account: got %s", got)
	}
	ended(dora, before)
}

// invite returns the token of an invitation, for a service without mail.
func invite(s *servicetest.Service, o *servicetest.Organization, email, role string) (token string) {
	var invitation struct {
		URL string `json:"url"`
	}
	s.SignIn(o.Owner).Call(http.MethodPost, "/v1/id/orgs/"+o.ID+"/invitations", map[string]string{"email": email, "role": role}, &invitation)
	_, token, _ = strings.Cut(invitation.URL, "/invitation#token=")
	return token
}

// The three ways to accept an invitation without JavaScript: as a new account, as an existing one by password, and in a
// session.
func TestInvitation(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	carl := s.Stranger()
	token := invite(s, s.Red, "carl@new.example", "policy_editor")
	shows(t, "the link's page", carl.Get("/invitation"), http.StatusOK, "Token of the link")
	shows(t, "a wrong token", carl.Post("/invitation", "do", "open", "token", token+"x"), http.StatusNotFound, "unknown, used, revoked or expired", `value="`+token+`x"`)
	shows(t, "opened", carl.Post("/invitation", "do", "open", "token", token), http.StatusOK,
		"<bdi>Invitation to Red</bdi>", "policy editor", "carl@new.example", "Create the account and accept")
	weak := carl.Post("/invitation", "do", "accept", "token", token, "display_name", "Carl <b>", "password", "short")
	shows(t, "a short password", weak, http.StatusUnprocessableEntity, "at least 10 characters", "<bdi>Invitation to Red</bdi>", "Carl &lt;b&gt;", `value="`+token+`"`)
	redirects(t, "a new account", carl.Post("/invitation", "do", "accept", "token", token, "display_name", "Carl <b>", "password", servicetest.Password),
		"/console?notice=joined")
	shows(t, "inside", carl.Get("/console?notice=joined"), http.StatusOK, "You are a member.", "policy editor")
	shows(t, "used", s.Stranger().Post("/invitation", "do", "accept", "token", token, "password", servicetest.Password), http.StatusNotFound, "used, revoked")

	second := invite(s, s.Blue, "carl@new.example", "auditor")
	shows(t, "another session", s.SignIn(s.Red.Owner).Post("/invitation", "do", "open", "token", second), http.StatusOK, "for another address")
	stranger := s.Stranger()
	shows(t, "a known account", stranger.Post("/invitation", "do", "open", "token", second), http.StatusOK, "already has an account", "sign in first")
	shows(t, "a wrong password", stranger.Post("/invitation", "do", "accept", "token", second, "password", newPassword), http.StatusUnauthorized,
		"Invalid e-mail address or password", "already has an account")
	shows(t, "its session", carl.Post("/invitation", "do", "open", "token", second), http.StatusOK, "Accept as <bdi>carl@new.example</bdi>")
	// The recipient of the first link may have created the account, so it can't join another organization before its
	// address is proved.
	shows(t, "an unproved address", carl.Post("/invitation", "do", "accept", "token", second), http.StatusForbidden,
		"The address of the account is not proved", "Accept as <bdi>carl@new.example</bdi>", `value="`+second+`"`)
	s.Prove("carl@new.example")
	redirects(t, "the session from before the proof", carl.Get("/console"), "/signin?return=%2Fconsole")
	carl = s.SignIn("carl@new.example")
	redirects(t, "accepted by the session", carl.Post("/invitation", "do", "accept", "token", second), "/console?notice=joined")
	shows(t, "inside", carl.Get("/console"), http.StatusOK, "<bdi>carl@new.example</bdi>", "Overview · Blue", "auditor")

	third := invite(s, s.Red, s.Blue.Owner, "auditor")
	redirects(t, "accepted by the password", s.Stranger().Post("/invitation", "do", "accept", "token", third, "password", servicetest.Password), "/console?notice=joined")
}
