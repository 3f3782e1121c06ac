package identity_test

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const (
	forgotPath = "/v1/id/auth/forgot-password"
	resetPath  = "/v1/id/auth/reset-password"
)

// postbox collects the messages that the outbox sends.
type postbox struct {
	mu       sync.Mutex
	messages []mail.Message
}

func (p *postbox) Send(_ context.Context, m mail.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, m)
	return nil
}

// deliver sends the waiting mails and returns all that were sent since the last call.
func (w *world) deliver() []mail.Message {
	w.t.Helper()
	ledgertest.RunUntilDone(w.t, w.Store, "mail_due", w.Clock, w.mail.Run)
	w.sent.mu.Lock()
	defer w.sent.mu.Unlock()
	sent := w.sent.messages
	w.sent.messages = nil
	return sent
}

func (w *world) forgot(email string) *httptest.ResponseRecorder {
	return w.call("POST", forgotPath, `{"email":"`+email+`"}`)
}

func (w *world) reset(token, password string) *httptest.ResponseRecorder {
	return w.call("POST", resetPath, `{"token":"`+token+`","password":"`+password+`"}`)
}

var resetLink = regexp.MustCompile(`\n` + regexp.QuoteMeta(publicURL) + `/reset-password#token=([A-Za-z0-9_.-]+)\n`)

// resetToken requests a reset and returns the token from the mail.
func (w *world) resetToken(email string) string {
	w.t.Helper()
	answers(w.t, "forgot", w.forgot(email), 204, "")
	sent := w.deliver()
	if len(sent) != 1 || sent[0].To != strings.ToLower(email) {
		w.t.Fatalf("got mails %+v", sent)
	}
	found := resetLink.FindStringSubmatch(sent[0].Text)
	if found == nil {
		w.t.Fatalf("no link in %s", sent[0].Text)
	}
	return found[1]
}

// A second reset within ten minutes sends no mail, but also answers 204. The first link stays valid, so nobody can make
// it invalid by requesting another.
func TestResetsAreMailedOnceInTenMinutes(t *testing.T) {
	w, _, _ := twoPeople(t)
	token := w.resetToken(email)
	for _, typed := range []string{email, "ANN+tag@example.com", strings.ToUpper(email), "nobody@example.com", "nobody@example.com"} {
		answers(t, typed, w.forgot(typed), 204, "")
	}
	if sent := w.deliver(); len(sent) != 0 {
		t.Errorf("got mails %+v", sent)
	}
	answers(t, "another person", w.forgot("bob@example.com"), 204, "")
	if sent := w.deliver(); len(sent) != 1 {
		t.Errorf("bob: got mails %+v", sent)
	}
	answers(t, "the first link", w.reset(token, newPassword), 204, "")
}

const resetOver = `{"error":"The link to set a new password has expired: request another one","code":"reset_over"}`

func TestReset(t *testing.T) {
	w, ann, bob := twoPeople(t)
	token := w.resetToken("Ann@Example.com")
	answers(t, "common", w.reset(token, "1234567890"), 422, refusal("The password is one of the 100,000 most common"))
	answers(t, "name", w.reset(token, "ann@example.com"), 422, refusal("The password must not be the e-mail address or the part before its @"))
	w.decode(w.as(ann, "GET", me, ""), 200, &signedIn{})
	answer := w.reset(token, newPassword)
	answers(t, "reset", answer, 204, "")
	if len(answer.Result().Cookies()) != 0 {
		t.Error("the reset signs in")
	}
	answers(t, "her session", w.as(ann, "GET", me, ""), 401, refusal("Not signed in"))
	w.decode(w.as(bob, "GET", me, ""), 200, &signedIn{})
	answers(t, "the password before", w.signIn(email, password), 401, refusal("Invalid e-mail address or password"))
	cookie := w.cookie(w.signIn(email, newPassword))
	answers(t, "token twice", w.reset(token, "another stable for it"), 422, resetOver)
	w.decode(w.as(cookie, "GET", me, ""), 200, &signedIn{})
	var events eventList
	w.decode(w.as(cookie, "GET", loginEventsPath, ""), 200, &events)
	kinds := map[string]int{} // the events have the same time
	for _, e := range events.LoginEvents {
		kinds[e.Kind]++
	}
	if want := map[string]int{"signed_in": 2, "password_reset": 1}; !maps.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	for _, secret := range []string{token, newPassword, email} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

// A token is invalid after the next one, after another password, and after an hour. A wrong token with the name of an
// account is invalid too.
func TestResetTokenEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, token string) string{
		"later one": func(w *world, token string) string {
			w.Pass(10 * time.Minute) // the limit on mails to an address
			w.resetToken(email)
			return token
		},
		"changed password": func(w *world, token string) string {
			w.decode(w.as(w.cookie(w.signIn(email, password)), "POST", accountPassword, `{"current":"`+password+`","new":"a third one for it"}`), 200, &signedIn{})
			return token
		},
		"time":       func(w *world, token string) string { w.Pass(time.Hour); return token },
		"wrong":      func(_ *world, token string) string { return token[:len(token)-1] + "_" },
		"longer":     func(_ *world, token string) string { return token + "a" },
		"name alone": func(_ *world, token string) string { return token[:strings.IndexByte(token, '.')+1] },
		"of a decoy": func(*world, string) string { return "decoy_0001." + strings.Repeat("a", 43) },
		"other account": func(w *world, token string) string { // ann's secret with bob's name
			return strings.Split(w.resetToken("bob@example.com"), ".")[0] + token[strings.IndexByte(token, '.'):]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := twoPeople(t)
			token := end(w, w.resetToken(email))
			answers(t, name, w.reset(token, newPassword), 422, resetOver)
			answers(t, name, w.signIn(email, newPassword), 401, refusal("Invalid e-mail address or password"))
		})
	}
}

// Of several concurrent calls with one token, one sets the password.
func TestResetRaced(t *testing.T) {
	w, _, _ := twoPeople(t)
	token := w.resetToken(email)
	var codes [3]int
	var group sync.WaitGroup
	for i := range codes {
		group.Go(func() { codes[i] = w.reset(token, fmt.Sprintf("stable number %d", i)).Code })
	}
	group.Wait()
	won := 0
	for i, code := range codes {
		if code == 204 {
			won++
			w.decode(w.signIn(email, fmt.Sprintf("stable number %d", i)), 200, &signedIn{})
		}
	}
	if won != 1 {
		t.Errorf("got %v", codes)
	}
}

func TestResetIsBounded(t *testing.T) {
	w, _, _ := twoPeople(t)
	limited := `{"error":"Too many resets of passwords, try again later","code":"rate_limited"}`
	for _, address := range []string{email, "nobody@example.com"} {
		for i := range 5 {
			answer := w.callFrom(fmt.Sprintf("198.51.100.%d", i), "POST", forgotPath, `{"email":"`+address+`"}`)
			if i < 3 {
				answers(t, address, answer, 204, "")
			} else {
				answers(t, address, answer, 429, limited)
			}
		}
	}
	for i := range 40 {
		answer := w.callFrom("203.0.113.9", "POST", forgotPath, fmt.Sprintf(`{"email":"person-%d@example.com"}`, i))
		if want := map[bool]int{true: 204, false: 429}[i < 30]; answer.Code != want {
			t.Fatalf("%d: got %d %s", i, answer.Code, answer.Body)
		}
	}
	for i := range 40 {
		answer := w.callFrom("203.0.113.10", "POST", resetPath, fmt.Sprintf(`{"token":"acc_%d.a","password":"%s"}`, i, newPassword))
		if want := map[bool]int{true: 422, false: 429}[i < 30]; answer.Code != want {
			t.Fatalf("token %d: got %d %s", i, answer.Code, answer.Body)
		}
	}
	if n := len(w.deliver()); n != 1 {
		t.Errorf("%d mails for one account", n)
	}
	w.Pass(10 * time.Minute)
	answers(t, "later", w.forgot(email), 204, "")
}

// Addresses with and without an account cannot be told apart: for 100 of each the answer is the same, after the same
// reads and writes.
func TestForgotPasswordTellsNothing(t *testing.T) {
	w := newWorld(t)
	const each = 100
	for i := range each {
		if _, _, err := w.accounts.Ensure(t.Context(), fmt.Sprintf("known-%d@example.com", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	for i := range each {
		var work [2]storagetest.Work
		for n, kind := range []string{"known", "unknown"} {
			body := fmt.Sprintf(`{"email":"%s-%d@example.com"}`, kind, i)
			work[n] = w.records.Work(func() {
				answer := w.callFrom(fmt.Sprintf("10.0.%d.%d", i, n), "POST", forgotPath, body)
				answers(t, kind, answer, 204, "")
				if got := answer.Header(); len(got["Set-Cookie"]) != 0 || len(got["Content-Type"]) != 0 {
					t.Errorf("%s: got %v", kind, got)
				}
			})
		}
		if work[0] != work[1] || work[0].Reads == 0 || work[0].Writes == 0 {
			t.Fatalf("pair %d: known %+v, unknown %+v", i, work[0], work[1])
		}
	}
	if n := len(w.deliver()); n != each {
		t.Errorf("%d mails, want %d", n, each)
	}
}

// Without a mail server the answer is the same, and nothing is written.
func TestForgotPasswordWithoutMail(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.Mail = notify.AccountMail{Outbox: mail.New(mail.Options{})} })
	w.organization("red")
	for _, address := range []string{email, "nobody@example.com"} {
		answers(t, address, w.forgot(address), 204, "")
	}
}

// An account without a password gets one by mail to its address.
func TestResetOfAnAccountWithoutAPassword(t *testing.T) {
	w := newWorld(t)
	w.decode(w.platform("POST", organizations, `{"name":"Red","slug":"red","admin_email":"`+email+`"}`), 201, &made{})
	answers(t, "reset", w.reset(w.resetToken(email), newPassword), 204, "")
	w.decode(w.signIn(email, newPassword), 200, &signedIn{})
}

func TestForgotPasswordNeedsAnAddress(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{`{}`, `{"email":"ann"}`, `{"email":"ann@example.com\r\nBcc: eve@example.net"}`} {
		answers(t, body, w.call("POST", forgotPath, body), 422, refusal("The e-mail address is malformed"))
	}
}

func TestResetRefusesOtherSites(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{forgotPath, resetPath} {
		answers(t, path, w.call("POST", path, `{}`, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403,
			refusal("Request of another origin"))
	}
}
