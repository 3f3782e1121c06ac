package identity_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const tooManySignIns = `{"error":"Too many sign-in attempts, try again later","code":"rate_limited"}`

// browserCookie returns the cookie that identifies a browser after a sign-in, or "" if there is none.
func browserCookie(answer *httptest.ResponseRecorder) string {
	for _, c := range answer.Result().Cookies() {
		if c.Name == "__Host-agentledger_browser" {
			return c.Name + "=" + c.Value
		}
	}
	return ""
}

// guess signs in from an address, in a browser that has a cookie or none ("").
func (w *world) guess(from, email, password, cookie string) *httptest.ResponseRecorder {
	return w.callFrom(from, "POST", login, `{"email":"`+email+`","password":"`+password+`"}`, "Cookie", cookie)
}

func TestBrowserCookie(t *testing.T) {
	w, _, _ := twoPeople(t)
	answer := w.signIn(email, password)
	cookies := answer.Result().Cookies()
	if len(cookies) != 2 || cookies[0].Name != "__Host-agentledger" {
		t.Fatalf("got %v", cookies)
	}
	c := cookies[1]
	if !c.HttpOnly || !c.Secure || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 180*24*3600 {
		t.Errorf("got %+v", c)
	}
	if got := w.guess("192.0.2.1", email, password, browserCookie(answer)); len(got.Result().Cookies()) != 1 {
		t.Errorf("a known browser gets %v", got.Result().Cookies())
	}
	if got := browserCookie(w.guess("192.0.2.1", "bob@example.com", password, browserCookie(answer))); got == "" {
		t.Error("bob's sign-in in ann's browser is not remembered")
	}
	answers(t, "no session", w.as(browserCookie(answer), "GET", me, ""), 401, refusal("Not signed in"))
}

// Attackers, whether behind the same address or many, do not lock a person out of a browser that signed in before.
func TestStrangersLockNobodyOut(t *testing.T) {
	w, ann, _ := twoPeople(t)
	known := browserCookie(w.signIn(email, password))
	bobs := browserCookie(w.signIn("bob@example.com", password))
	for range 10 {
		answers(t, "guess", w.guess("192.0.2.1", email, "wrong password", ""), 401, refusal("Invalid e-mail address or password"))
	}
	answers(t, "an unknown browser there", w.guess("192.0.2.1", email, password, ""), 429, tooManySignIns)
	for name, cookie := range map[string]string{"of bob": bobs, "cut": known[:len(known)-4], "changed": known[:40] + "AAAA" + known[44:], "empty": "__Host-agentledger_browser="} {
		answers(t, name, w.guess("192.0.2.1", email, password, cookie), 429, tooManySignIns)
	}
	w.decode(w.guess("192.0.2.1", email, password, known), 200, &signedIn{})
	w.decode(w.guess("198.51.100.1", email, password, ""), 200, &signedIn{})
	w.decode(w.guess("192.0.2.1", "bob@example.com", password, ""), 200, &signedIn{})

	for i := range 90 { // together with the ten before, the limit of all networks
		answers(t, "guess", w.guess(fmt.Sprintf("203.0.113.%d", i), email, "wrong password", ""), 401, refusal("Invalid e-mail address or password"))
	}
	answers(t, "from anywhere", w.guess("198.51.100.1", email, password, ""), 429, tooManySignIns)
	w.decode(w.guess("198.51.100.1", email, password, known), 200, &signedIn{})
	answers(t, "step-up, unknown browser", w.as(ann, "POST", stepUp, `{"password":"`+password+`"}`), 429, tooManySignIns)
	w.decode(w.as(ann+"; "+known, "POST", stepUp, `{"password":"`+password+`"}`), 200, &signedIn{})

	for range 10 {
		answers(t, "guess in the browser", w.guess("192.0.2.1", email, "wrong password", known), 401, refusal("Invalid e-mail address or password"))
	}
	answers(t, "too many in the browser", w.guess("198.51.100.7", email, password, known), 429, tooManySignIns)
	w.Pass(time.Minute)
	w.decode(w.guess("192.0.2.1", email, password, known), 200, &signedIn{})
}

// A network that guesses at many addresses is limited, while others can sign in.
func TestGuessesOverAddresses(t *testing.T) {
	w, _, _ := twoPeople(t)
	for i := range 100 {
		answers(t, "guess", w.guess("192.0.2.9", fmt.Sprintf("person-%d@example.com", i), "wrong password", ""), 401, refusal("Invalid e-mail address or password"))
	}
	answers(t, "one more", w.guess("192.0.2.9", "bob@example.com", password, ""), 429, tooManySignIns)
	w.decode(w.guess("192.0.2.8", "bob@example.com", password, ""), 200, &signedIn{})
	if strings.Contains(w.log.String(), "person-1@") {
		t.Error("an address is in the log")
	}
}

// Guesses of invitation tokens are limited by network. Correct tokens from elsewhere still work.
func TestGuessedInvitations(t *testing.T) {
	w := newWorld(t)
	red := w.team("red")
	_, token := red.invite("bob@example.com", "member")
	look := func(from, token string) *httptest.ResponseRecorder {
		return w.callFrom(from, "GET", preview, "", "X-Invitation-Token", token)
	}
	for range 30 {
		answers(t, "guess", look("192.0.2.9", token[:len(token)-4]+"AAAA"), 404, refusal(noInvitation))
	}
	const limited = `{"error":"Too many attempts, try again later","code":"rate_limited"}`
	answers(t, "one more", look("192.0.2.9", token), 429, limited)
	answers(t, "accept", w.callFrom("192.0.2.9", "POST", accept, `{"token":"`+token+`","password":"`+password+`"}`), 429, limited)
	for range 40 {
		if got := look("192.0.2.8", token).Code; got != 200 {
			t.Fatalf("the right token elsewhere: got %d", got)
		}
	}
}
