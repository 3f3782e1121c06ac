package identity_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/deliver/notify"
)

const (
	emailPath   = "/v1/id/account/email"
	confirmPath = "/v1/id/account/email/confirm"
	changeOver  = `{"error":"The link to confirm the address has expired: request another one","code":"change_over"}`
	newEmail    = "ann@new.example"
)

var confirmLink = regexp.MustCompile(`\n` + regexp.QuoteMeta(publicURL) + `/confirm-email#token=([A-Za-z0-9_-]{43})\n`)

// changeToken requests a change to another address and returns the token that was mailed to it.
func (w *world) changeToken(cookie, email string) string {
	w.t.Helper()
	answers(w.t, "ask", w.as(cookie, "POST", emailPath, `{"email":"`+email+`"}`), 204, "")
	sent := w.deliver()
	if len(sent) != 1 || sent[0].To != strings.ToLower(email) || sent[0].Subject != "Confirm your address" {
		w.t.Fatalf("got mails %+v", sent)
	}
	found := confirmLink.FindStringSubmatch(sent[0].Text)
	if found == nil {
		w.t.Fatalf("no link in %s", sent[0].Text)
	}
	return found[1]
}

func tokenBody(token string) string { return `{"token":"` + token + `"}` }

func TestChangeEmail(t *testing.T) {
	w, ann, bob := twoPeople(t)
	other := w.cookie(w.signIn(email, password))
	reset := w.resetToken(email)
	token := w.changeToken(ann, "Ann@New.example")
	answers(t, "bob's session", w.as(bob, "POST", confirmPath, tokenBody(token)), 422, changeOver)
	answers(t, "no session", w.call("POST", confirmPath, tokenBody(token)), 401, refusal("Not signed in"))
	answers(t, "a password of a proved account", w.as(ann, "POST", confirmPath, `{"token":"`+token+`","password":"`+newPassword+`"}`), 422,
		refusal("The address of the account is already proved: omit the password"))
	w.Pass(14 * time.Minute)
	answer := w.as(ann, "POST", confirmPath, tokenBody(token))
	var got signedIn
	w.decode(answer, 200, &got)
	if got.Account.Email != newEmail {
		t.Errorf("got %+v", got)
	}
	again := w.cookie(answer)
	for name, cookie := range map[string]string{"this session": ann, "the other one": other} {
		answers(t, name, w.as(cookie, "GET", me, ""), 401, refusal("Not signed in"))
	}
	w.decode(w.as(bob, "GET", me, ""), 200, &signedIn{})
	sent := w.deliver()
	if len(sent) != 1 || sent[0].To != email || sent[0].Subject != "The address of your account was changed" || strings.Contains(sent[0].Text, newEmail) {
		t.Errorf("got mails %+v", sent)
	}
	answers(t, "token twice", w.as(again, "POST", confirmPath, tokenBody(token)), 422, changeOver)
	answers(t, "a reset of before", w.reset(reset, newPassword), 422, resetOver)
	answers(t, "the address before", w.signIn(email, password), 401, refusal("Invalid e-mail address or password"))
	w.decode(w.signIn(newEmail, password), 200, &signedIn{})
	w.Pass(time.Minute) // the confirmation did not renew the proof of a factor
	answers(t, "step-up", w.as(again, "POST", emailPath, `{"email":"x@example.com"}`), 401, `{"error":"Confirm your identity again: step up","code":"step_up"}`)
	if _, made, err := w.accounts.Ensure(t.Context(), email, ""); err != nil || !made {
		t.Errorf("the address before is not free: %v", err)
	}
	for _, secret := range []string{token, newEmail} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

// An account keeps its former addresses, because a person may not vote on an approval requested under one of them. So
// it can change its address only 32 times.
func TestFormerAddresses(t *testing.T) {
	const full = `{"error":"The account has already had 32 other addresses, so it keeps this one","code":"addresses_full"}`
	w, _, _ := twoPeople(t)
	now, want := email, []string{}
	for n := range 33 {
		next := fmt.Sprintf("ann%d@new.example", n)
		w.Pass(time.Hour)
		cookie := w.cookie(w.signIn(now, password))
		answer := w.as(cookie, "POST", confirmPath, tokenBody(w.changeToken(cookie, next)))
		if n == 32 {
			answers(t, next, answer, 409, full)
			break
		}
		w.decode(answer, 200, &signedIn{})
		w.deliver()
		now, want = next, append(want, now)
	}
	who, err := w.accounts.Find(t.Context(), now)
	if err != nil || !slices.Equal(who.FormerEmails, want) {
		t.Errorf("got %q, %v; want %q", who.FormerEmails, err, want)
	}
	if bob, err := w.accounts.Find(t.Context(), "bob@example.com"); err != nil || len(bob.FormerEmails) != 0 {
		t.Errorf("bob: got %q, %v", bob.FormerEmails, err)
	}
}

// An address that an account takes again is not a former address any more.
func TestAddressTakenAgain(t *testing.T) {
	w, ann, _ := twoPeople(t)
	ann = w.cookie(w.as(ann, "POST", confirmPath, tokenBody(w.changeToken(ann, newEmail))))
	w.deliver()
	w.decode(w.as(ann, "POST", confirmPath, tokenBody(w.changeToken(ann, email))), 200, &signedIn{})
	who, err := w.accounts.Find(t.Context(), email)
	if want := []string{newEmail}; err != nil || !slices.Equal(who.FormerEmails, want) {
		t.Errorf("got %q, %v; want %q", who.FormerEmails, err, want)
	}
}

// A token is invalid after the next one was mailed, after a change of the password, and after an hour.
func TestChangeEmailEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, ann, token string) (cookie, spoiled string){
		"later one": func(w *world, ann, token string) (string, string) {
			w.Pass(10 * time.Minute) // the limit on mails to an address
			w.changeToken(ann, newEmail)
			return ann, token
		},
		"changed password": func(w *world, ann, token string) (string, string) {
			return w.cookie(w.as(ann, "POST", accountPassword, `{"current":"`+password+`","new":"`+newPassword+`"}`)), token
		},
		"time":  func(w *world, ann, token string) (string, string) { w.Pass(time.Hour); return ann, token },
		"wrong": func(_ *world, ann, token string) (string, string) { return ann, token[:42] + "-" },
	} {
		t.Run(name, func(t *testing.T) {
			w, ann, _ := twoPeople(t)
			cookie, token := end(w, ann, w.changeToken(ann, newEmail))
			answers(t, name, w.as(cookie, "POST", confirmPath, tokenBody(token)), 422, changeOver)
			answers(t, name, w.signIn(newEmail, password), 401, refusal("Invalid e-mail address or password"))
		})
	}
}

// The address of another account causes the same answer and the same mail. Only a reader of that mailbox who confirms
// it learns that the address is taken.
func TestChangeEmailToAKnownAddress(t *testing.T) {
	w, ann, bob := twoPeople(t)
	token := w.changeToken(ann, "bob@example.com")
	answers(t, "confirm", w.as(ann, "POST", confirmPath, tokenBody(token)), 409, `{"error":"The address belongs to another account","code":"address_known"}`)
	w.decode(w.as(bob, "GET", me, ""), 200, &signedIn{})
	w.decode(w.as(ann, "GET", me, ""), 200, &signedIn{})
	own := w.changeToken(ann, email)
	var got signedIn
	w.decode(w.as(ann, "POST", confirmPath, tokenBody(own)), 200, &got)
	if got.Account.Email != email {
		t.Errorf("got %+v", got)
	}
	w.decode(w.signIn(email, password), 200, &signedIn{})
}

// Of several concurrent calls with one token, one changes the address; of two accounts, one gets it.
func TestChangeEmailRaced(t *testing.T) {
	w, ann, bob := twoPeople(t)
	cookies := []string{ann, bob}
	tokens := []string{w.changeToken(ann, newEmail), ""}
	w.Pass(10 * time.Minute) // the limit on mails to an address
	tokens[1] = w.changeToken(bob, newEmail)
	codes := make([]int, 8)
	var group sync.WaitGroup
	for i := range codes {
		group.Go(func() { codes[i] = w.as(cookies[i%2], "POST", confirmPath, tokenBody(tokens[i%2])).Code })
	}
	group.Wait()
	if n := len(slices.DeleteFunc(codes, func(c int) bool { return c != 200 })); n != 1 {
		t.Errorf("%d calls changed an address: %v", n, codes)
	}
}

const mailedRecently = `{"error":"The address was mailed recently: the service mails an address that is no member at most once in 10 minutes and 5 times a day","code":"rate_limited"}`

func TestChangeEmailIsBounded(t *testing.T) {
	const limited = `{"error":"Too many resets of passwords, try again later","code":"rate_limited"}`
	w, ann, bob := twoPeople(t)
	for i := range 4 {
		answer := w.as(ann, "POST", emailPath, fmt.Sprintf(`{"email":"victim-%d@example.com"}`, i))
		if i < 3 {
			answers(t, "ann", answer, 204, "")
		} else {
			answers(t, "ann", answer, 429, limited)
		}
	}
	answers(t, "bob", w.as(bob, "POST", emailPath, `{"email":"victim-9@example.com"}`), 204, "")
	answers(t, "an address that was mailed for another account", w.as(bob, "POST", emailPath, `{"email":"victim-9+x@Example.com"}`), 429, mailedRecently)
	for range 9 {
		w.as(bob, "POST", confirmPath, tokenBody("guess"))
	}
	answers(t, "guesses", w.as(bob, "POST", confirmPath, tokenBody("guess")), 429, limited)
}

func TestChangeEmailRefuses(t *testing.T) {
	w, ann, _ := twoPeople(t)
	for _, typed := range []string{"", "ann", `ann@example.com\r\nBcc: eve@example.net`, "Ann <ann@example.com>"} {
		answers(t, typed, w.as(ann, "POST", emailPath, `{"email":"`+typed+`"}`), 422, refusal("The e-mail address is malformed"))
	}
	for _, path := range []string{emailPath, confirmPath} {
		answers(t, path, w.call("POST", path, `{}`, "Cookie", ann, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403, refusal("Request of another origin"))
	}
	w.Pass(15 * time.Minute)
	answers(t, "step-up", w.as(ann, "POST", emailPath, `{"email":"`+newEmail+`"}`), 401, `{"error":"Confirm your identity again: step up","code":"step_up"}`)
	if sent := w.deliver(); len(sent) != 0 {
		t.Errorf("got mails %+v", sent)
	}
}

// Without a mail server, no address can be confirmed, and a change of the password sends no mail.
func TestAccountWithoutMail(t *testing.T) {
	w, ann, _ := twoPeople(t)
	w.mail.Transport = nil
	answers(t, "ask", w.as(ann, "POST", emailPath, `{"email":"`+newEmail+`"}`), 409,
		`{"error":"The service sends no mail, so an address can't be confirmed: ask its operator","code":"no_mail"}`)
	w.decode(w.as(ann, "POST", accountPassword, `{"current":"`+password+`","new":"`+newPassword+`"}`), 200, &signedIn{})
}

// An invitation is mailed when it is made and when it is sent again. Only the invited person gets the token. Without a
// mail server, the inviter gets the link.
func TestInvitationsAreMailed(t *testing.T) {
	w := newWorld(t)
	w.members.Mail = notify.OrganizationMail{Outbox: w.mail, Organizations: w.orgs, Accounts: w.accounts, PublicURL: publicURL}
	red, blue := &team{world: w, made: w.organization("red"), people: map[string]*person{}}, &team{world: w, made: w.organization("blue"), people: map[string]*person{}}
	for _, o := range []*team{red, blue} {
		o.path = "/v1/id/orgs/" + o.OrganizationID
		o.enter("ann", email)
	}
	link := regexp.MustCompile(`\n` + regexp.QuoteMeta(publicURL) + `/invitation#token=([A-Za-z0-9_-]{86})\n`)
	tokenOf := func(sent map[string]any) string {
		t.Helper()
		if sent["mailed"] != true || sent["url"] != nil {
			t.Errorf("got %v", sent)
		}
		mails := w.deliver()
		if len(mails) != 1 || mails[0].To != "bob@example.com" || !strings.Contains(mails[0].Text, "Its name: RED\nYour role: approver\n") {
			t.Fatalf("got mails %+v", mails)
		}
		found := link.FindStringSubmatch(mails[0].Text)
		if found == nil {
			t.Fatalf("no link in %s", mails[0].Text)
		}
		return found[1]
	}
	sent := red.must(201, "ann", "POST", red.path+"/invitations", `{"email":"bob@example.com","role":"approver"}`)
	first := tokenOf(sent)
	w.Pass(10 * time.Minute) // the limit on mails to an address
	second := tokenOf(red.must(200, "ann", "POST", red.path+"/invitations/"+sent["invitation_id"].(string)+"/resend", ""))
	red.refuses("", "POST", accept, `{"token":"`+first+`","password":"`+password+`"}`, 404, "", noInvitation)
	red.must(200, "", "POST", accept, `{"token":"`+second+`","password":"`+password+`"}`)
	if listed := blue.must(200, "ann", "GET", blue.path+"/invitations", ""); len(listed["invitations"].([]any)) != 0 {
		t.Errorf("blue has %v", listed)
	}
	if strings.Contains(w.log.String(), second) {
		t.Error("the log holds the token")
	}
	w.mail.Transport = nil
	if _, token := blue.invite("carl@example.com", "member"); token == "" {
		t.Error("no token without mail")
	}
}

// Every change of a password is mailed to the person, with the way it was changed.
func TestPasswordChangesAreMailed(t *testing.T) {
	for name, change := range map[string]func(w *world, ann string){
		"by the person": func(w *world, ann string) {
			w.decode(w.as(ann, "POST", accountPassword, `{"current":"`+password+`","new":"`+newPassword+`"}`), 200, &signedIn{})
		},
		"by a reset": func(w *world, _ string) { answers(w.t, "reset", w.reset(w.resetToken(email), newPassword), 204, "") },
		"by the operator": func(w *world, _ string) {
			answers(w.t, "operator", w.platform("POST", "/v1/id/platform/accounts/password", `{"email":"`+email+`","password":"`+newPassword+`"}`), 204, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, ann, _ := twoPeople(t)
			change(w, ann)
			sent := w.deliver()
			if len(sent) != 1 || sent[0].To != email || sent[0].Subject != "Your password was changed" || strings.Contains(sent[0].Text, newPassword) {
				t.Errorf("got mails %+v", sent)
			}
			w.as(w.cookie(w.signIn(email, newPassword)), "POST", accountPassword, `{"current":"wrong","new":"a third one for it"}`)
			if sent := w.deliver(); len(sent) != 0 {
				t.Errorf("after a refused change: got mails %+v", sent)
			}
		})
	}
}
