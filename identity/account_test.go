package identity_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	stepUp          = "/v1/id/auth/step-up"
	accountPath     = "/v1/id/account"
	accountPassword = "/v1/id/account/password"
	sessionsPath    = "/v1/id/account/sessions"
	loginEventsPath = "/v1/id/account/login-events"

	newPassword = "a stable for the battery"
)

type sessionList struct {
	Sessions []struct {
		SessionID    string `json:"session_id"`
		Current      bool   `json:"current"`
		Organization *struct {
			OrganizationID string `json:"organization_id"`
			Slug           string `json:"slug"`
			Name           string `json:"name"`
		} `json:"organization"`
		OpenedAt  string `json:"opened_at"`
		SeenAt    string `json:"seen_at"`
		ExpiresAt string `json:"expires_at"`
		Address   string `json:"address"`
		Program   string `json:"program"`
	} `json:"sessions"`
	Next *string `json:"next"`
}

type eventList struct {
	LoginEvents []struct {
		At      string `json:"at"`
		Kind    string `json:"kind"`
		Address string `json:"address"`
		Program string `json:"program"`
	} `json:"login_events"`
	Next *string `json:"next"`
}

// twoPeople returns ann, the owner of red, and bob, the owner of blue, each with a session.
func twoPeople(t *testing.T) (w *world, ann, bob string) {
	w = newWorld(t)
	w.organization("red")
	w.decode(w.platform("POST", organizations, `{"name":"Blue","slug":"blue","admin_email":"bob@example.com","admin_password":"`+password+`"}`), 201, &made{})
	return w, w.cookie(w.signIn(email, password)), w.cookie(w.signIn("bob@example.com", password))
}

func (w *world) as(cookie, method, path, body string) *httptest.ResponseRecorder {
	return w.call(method, path, body, "Cookie", cookie)
}

func TestStepUpCall(t *testing.T) {
	w, ann, bob := twoPeople(t)
	answers(t, "wrong", w.as(ann, "POST", stepUp, `{"password":"`+newPassword+`"}`), 401, `{"error":"Wrong password","code":"wrong_password"}`)
	answer := w.as(ann, "POST", stepUp, `{"password":"`+password+`"}`)
	w.decode(answer, 200, &signedIn{})
	again := w.cookie(answer)
	if again == ann {
		t.Error("the token is the one before")
	}
	answers(t, "the token before", w.as(ann, "GET", me, ""), 401, refusal("Not signed in"))
	w.decode(w.as(again, "GET", me, ""), 200, &signedIn{})
	w.decode(w.as(bob, "GET", me, ""), 200, &signedIn{})
	for range 10 {
		w.as(again, "POST", stepUp, `{"password":"`+newPassword+`"}`)
	}
	answers(t, "too many", w.as(again, "POST", stepUp, `{"password":"`+password+`"}`), 429,
		`{"error":"Too many sign-in attempts, try again later","code":"rate_limited"}`)
	answers(t, "too many", w.as(again, "POST", accountPassword, `{"current":"`+password+`","new":"`+newPassword+`"}`), 429,
		`{"error":"Too many sign-in attempts, try again later","code":"rate_limited"}`)
}

func TestChangePasswordCall(t *testing.T) {
	w, ann, bob := twoPeople(t)
	other := w.cookie(w.signIn(email, password))
	change := func(current, next string) *httptest.ResponseRecorder {
		return w.as(ann, "POST", accountPassword, `{"current":"`+current+`","new":"`+next+`"}`)
	}
	for next, message := range map[string]string{
		"short":      "The password must have at least 10 characters and at most 1024 bytes",
		"1234567890": "The password is one of the 100,000 most common",
		email:        "The password must not be the e-mail address or the part before its @",
	} {
		answers(t, next, change(password, next), 422, refusal(message))
	}
	answers(t, "wrong", change(newPassword, newPassword), 401, `{"error":"Wrong password","code":"wrong_password"}`)
	answer := change(password, newPassword)
	w.decode(answer, 200, &signedIn{})
	for name, cookie := range map[string]string{"this session": ann, "the other one": other} {
		answers(t, name, w.as(cookie, "GET", me, ""), 401, refusal("Not signed in"))
	}
	w.decode(w.as(w.cookie(answer), "GET", me, ""), 200, &signedIn{})
	w.decode(w.as(bob, "GET", me, ""), 200, &signedIn{})
	answers(t, "the password before", w.signIn(email, password), 401, refusal("Invalid e-mail address or password"))
	w.decode(w.signIn(email, newPassword), 200, &signedIn{})
}

func TestOrganizationsNameIsNoPassword(t *testing.T) {
	w := newWorld(t)
	w.decode(w.platform("POST", organizations, `{"name":"Red Herrings","slug":"red","admin_email":"`+email+`","admin_password":"`+password+`"}`), 201, &made{})
	cookie := w.cookie(w.signIn(email, password))
	answers(t, "name", w.as(cookie, "POST", accountPassword, `{"current":"`+password+`","new":"red herrings"}`), 422,
		refusal("The password must not be the organization's name"))
}

func TestPatchAccount(t *testing.T) {
	w, ann, bob := twoPeople(t)
	var got signedIn
	w.decode(w.as(ann, "PATCH", accountPath, `{"display_name":"Ann"}`), 200, &got)
	if got.Account.DisplayName != "Ann" {
		t.Errorf("got %+v", got)
	}
	if !got.Account.ApprovalMail {
		t.Errorf("got %+v", got)
	}
	w.decode(w.as(ann, "PATCH", accountPath, `{"approval_mail":false}`), 200, &got)
	if got.Account.ApprovalMail || got.Account.WeeklyMail {
		t.Errorf("got %+v", got)
	}
	for _, weekly := range []bool{true, false} {
		w.decode(w.as(ann, "PATCH", accountPath, fmt.Sprintf(`{"weekly_mail":%v}`, weekly)), 200, &got)
		if got.Account.WeeklyMail != weekly || got.Account.ApprovalMail {
			t.Errorf("weekly mail %v: got %+v", weekly, got)
		}
	}
	w.decode(w.as(bob, "GET", me, ""), 200, &got)
	if !got.Account.ApprovalMail {
		t.Errorf("bob: got %+v", got)
	}
	for _, utc := range []bool{true, false} {
		w.decode(w.as(ann, "PATCH", accountPath, fmt.Sprintf(`{"times_in_utc":%v}`, utc)), 200, &got)
		if got.Account.TimesInUTC != utc || got.Account.ApprovalMail {
			t.Errorf("times in UTC %v: got %+v", utc, got)
		}
	}
	w.decode(w.as(ann, "PATCH", accountPath, `{}`), 200, &got)
	if got.Account.DisplayName != "Ann" {
		t.Errorf("got %+v", got)
	}
	w.decode(w.as(bob, "GET", me, ""), 200, &got)
	if got.Account.DisplayName != "" {
		t.Errorf("got %+v", got)
	}
	answers(t, "long", w.as(ann, "PATCH", accountPath, `{"display_name":"`+strings.Repeat("a", 101)+`"}`), 422,
		refusal("display_name must have at most 100 characters, and no control characters"))
}

func TestSessionsAndEvents(t *testing.T) {
	w, ann, bob := twoPeople(t)
	w.Pass(time.Minute)
	second := w.cookie(w.call("POST", login, `{"email":"`+email+`","password":"`+password+`"}`, "User-Agent", "Navigator/3"))
	third := w.cookie(w.signIn(email, password))
	var list sessionList
	w.decode(w.as(second, "GET", sessionsPath, ""), 200, &list)
	if len(list.Sessions) != 3 || list.Sessions[2].Current || list.Sessions[2].Organization.Slug != "red" || list.Sessions[2].Address != "192.0.2.1" {
		t.Fatalf("got %+v", list)
	}
	current := ""
	for _, s := range list.Sessions {
		if s.Current {
			current = s.SessionID
			if s.Program != "Navigator/3" {
				t.Errorf("got %+v", s)
			}
		}
	}
	answers(t, "of another account", w.as(bob, "DELETE", sessionsPath+"/"+current, ""), 404, refusal("Not found"))
	answers(t, "one", w.as(ann, "DELETE", sessionsPath+"/"+current, ""), 204, "")
	answers(t, "ended", w.as(second, "GET", me, ""), 401, refusal("Not signed in"))
	answers(t, "again", w.as(ann, "DELETE", sessionsPath+"/"+current, ""), 404, refusal("Not found"))
	answers(t, "others", w.as(ann, "DELETE", sessionsPath, ""), 204, "")
	answers(t, "ended", w.as(third, "GET", me, ""), 401, refusal("Not signed in"))
	w.decode(w.as(ann, "GET", me, ""), 200, &signedIn{})
	w.decode(w.as(bob, "GET", me, ""), 200, &signedIn{})
	var events eventList
	w.decode(w.as(ann, "GET", loginEventsPath, ""), 200, &events)
	if n := len(events.LoginEvents); n != 5 || events.LoginEvents[4].Kind != "signed_in" || events.LoginEvents[4].Address != "192.0.2.1" {
		t.Errorf("got %+v", events)
	}
	w.decode(w.as(bob, "GET", loginEventsPath, ""), 200, &events)
	if len(events.LoginEvents) != 1 {
		t.Errorf("bob's: got %+v", events)
	}
}

func TestAccountCallsAreOutrun(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	ann := w.cookie(w.signIn(email, password))
	w.serveAccounts(outrunStore{w.Store})
	for _, route := range [][3]string{
		{"PATCH", accountPath, `{"display_name":"Ann"}`}, {"POST", accountPassword, `{"current":"` + password + `","new":"` + newPassword + `"}`},
	} {
		answers(t, route[1], w.as(ann, route[0], route[1], route[2]), 409, refusal("The account was changed in the meantime"))
	}
}

// Every call about an account needs a session, and those that change something refuse pages of other origins.
func TestAccountCallsAreGuarded(t *testing.T) {
	w, ann, _ := twoPeople(t)
	for _, route := range [][3]string{
		{"POST", stepUp, `{"password":"` + password + `"}`}, {"PATCH", accountPath, `{}`}, {"POST", accountPassword, `{"current":"` + password + `","new":"` + newPassword + `"}`},
		{"GET", sessionsPath, ""}, {"DELETE", sessionsPath, ""}, {"DELETE", sessionsPath + "/ses_06pqj5ok7oqhk0g2u37nj4pi8s", ""}, {"GET", loginEventsPath, ""},
	} {
		answers(t, route[1], w.call(route[0], route[1], route[2]), 401, refusal("Not signed in"))
		if route[0] == "GET" {
			continue
		}
		answers(t, route[1], w.call(route[0], route[1], route[2], "Cookie", ann, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403,
			refusal("Request of another origin"))
	}
	w.decode(w.as(ann, "GET", me, ""), 200, &signedIn{})
}
