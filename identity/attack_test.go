package identity_test

import (
	"testing"
	"time"
)

// A sign-in does not continue a session that an attacker planted in the browser.
func TestFixedSession(t *testing.T) {
	w, _, bob := twoPeople(t)
	body := `{"email":"` + email + `","password":"` + password + `"}`
	for name, planted := range map[string]string{"of bob": bob, "made up": "__Host-agentledger=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		answer := w.as(planted, "POST", login, body)
		w.decode(answer, 200, &signedIn{})
		if w.cookie(answer) == planted {
			t.Errorf("%s: the session goes on under the planted token", name)
		}
	}
	var still signedIn
	w.decode(w.as(bob, "GET", me, ""), 200, &still)
	if still.Account.Email != "bob@example.com" {
		t.Errorf("the planted session is %+v", still.Account)
	}
	answers(t, "made up", w.as("__Host-agentledger=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "GET", me, ""), 401, refusal("Not signed in"))
}

// A copy of a session stolen before a step-up proves nothing after it and ends nothing.
func TestSessionStolenBeforeStepUp(t *testing.T) {
	w := newWorld(t)
	red := w.team("red", "admin")
	w.Pass(20 * time.Minute)
	stolen := *red.people["ann"]
	red.refuses("ann", "PATCH", red.member("ann"), `{"role":"owner"}`, 401, "step_up", "Confirm your identity again: step up")
	answer := w.as(stolen.cookie, "POST", stepUp, `{"password":"`+password+`"}`)
	w.decode(answer, 200, &signedIn{})
	red.people["ann"].cookie = w.cookie(answer)
	red.people["thief"] = &stolen
	for _, call := range [][3]string{{"PATCH", red.member("ann"), `{"role":"owner"}`}, {"POST", emailPath, `{"email":"eve@example.net"}`},
		{"POST", accountPassword, `{"current":"` + password + `","new":"` + newPassword + `"}`}, {"DELETE", sessionsPath, ""}, {"GET", me, ""}} {
		red.refuses("thief", call[0], call[1], call[2], 401, "", "Not signed in")
	}
	red.must(200, "ann", "PATCH", red.member("ann"), `{"role":"owner"}`)
}

// The session of a member who lost the role, was suspended or was removed loses its rights with the next request. In
// the other organization nothing changes.
func TestSessionAfterRoleLoss(t *testing.T) {
	for name, lose := range map[string]struct {
		change  func(red *team)
		status  int
		message string
	}{
		"role":      {func(red *team) { red.must(200, "ann", "PATCH", red.member("admin"), `{"role":"member"}`) }, 403, noRight},
		"suspended": {func(red *team) { red.must(200, "ann", "PATCH", red.member("admin"), `{"suspended":true}`) }, 401, "Not signed in"},
		"removed":   {func(red *team) { red.must(204, "ann", "DELETE", red.member("admin"), "") }, 401, "Not signed in"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			red, blue := w.team("red", "admin"), w.team("blue")
			w.prove(address("admin"))
			_, token := blue.invite(address("admin"), "admin")
			blue.must(200, "", "POST", accept, `{"token":"`+token+`","password":"`+password+`"}`)
			blue.enter("admin", address("admin"))
			red.must(201, "admin", "POST", red.path+"/invitations", `{"email":"first@example.com","role":"member"}`)
			lose.change(red)
			red.refuses("admin", "POST", red.path+"/invitations", `{"email":"second@example.com","role":"member"}`, lose.status, "", lose.message)
			blue.must(201, "admin", "POST", blue.path+"/invitations", `{"email":"second@example.com","role":"member"}`)
		})
	}
}

// Texts that people enter cannot add a header or a second recipient to a mail.
func TestMailInjection(t *testing.T) {
	w := newWorld(t)
	red := w.team("red")
	for _, typed := range []string{`x@example.com\r\nBcc: eve@example.net`, `x@example.com\nSubject: hi`, `\"x\r\n\"@example.com`, `x@example.com,eve@example.net`,
		`x@example.com>\r\nRCPT TO:<eve@example.net`, `Bob <bob@example.com>`} {
		red.refuses("ann", "POST", red.path+"/invitations", `{"email":"`+typed+`","role":"member"}`, 422, "", "The e-mail address is malformed")
		red.refuses("ann", "POST", emailPath, `{"email":"`+typed+`"}`, 422, "", "The e-mail address is malformed")
		red.refuses("", "POST", forgotPath, `{"email":"`+typed+`"}`, 422, "", "The e-mail address is malformed")
	}
	if sent := w.deliver(); len(sent) != 0 {
		t.Errorf("got mails %+v", sent)
	}
}
