package identity_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

const noInvitation = "The invitation is unknown, used, revoked or expired"

func TestInvitations(t *testing.T) {
	w := newWorld(t)
	red, blue := w.team("red"), w.team("blue")
	sent := red.must(201, "ann", "POST", red.path+"/invitations", `{"email":"Bob@Example.com","role":"approver"}`)
	begin, token, _ := strings.Cut(sent["url"].(string), "#token=")
	if begin != publicURL+"/invitation" || len(token) != 86 || sent["mailed"] != false || len(sent) != 4 {
		t.Fatalf("got %v", sent)
	}
	invitation := sent["invitation_id"].(string)
	listed := red.must(200, "ann", "GET", red.path+"/invitations", "")
	one := listed["invitations"].([]any)[0].(map[string]any)
	if one["invitation_id"] != invitation || one["email"] != "bob@example.com" || one["role"] != "approver" ||
		one["created_by"] != red.people["ann"].account || one["expires_at"] != sent["expires_at"] || listed["next"] != nil {
		t.Errorf("got %v", listed)
	}
	if got := blue.must(200, "ann", "GET", blue.path+"/invitations", "")["invitations"].([]any); len(got) != 0 {
		t.Errorf("blue has %v", got)
	}
	shown := func(exists bool) {
		t.Helper()
		code, got := red.as("", "GET", preview, "", "X-Invitation-Token", token)
		if code != 200 || got["name"] != "RED" || got["slug"] != "red" || got["role"] != "approver" || got["email"] != "bob@example.com" ||
			got["account_exists"] != exists || got["organization_id"] != red.OrganizationID || got["expires_at"] != sent["expires_at"] {
			t.Errorf("preview: got %d %v", code, got)
		}
	}
	shown(false)
	red.refuses("ann", "POST", red.path+"/invitations", `{"email":"bob@example.com","role":"member"}`, 409, "invited",
		"The address has an open invitation: send that again, or revoke it")
	red.refuses("ann", "POST", red.path+"/invitations", `{"email":"ann@example.com","role":"member"}`, 409, "member", "The address is one of a member")
	red.refuses("ann", "POST", red.path+"/invitations", `{"email":"bob","role":"member"}`, 422, "", "The e-mail address is malformed")
	red.refuses("ann", "POST", red.path+"/invitations", `{"email":"x@example.com","role":"king"}`, 422, "",
		"role must be one of owner, admin, policy_editor, approver, auditor and member")
	red.refuses("ann", "POST", red.path+"/invitations/inv_0/resend", "", 404, "", "Not found")
	red.refuses("ann", "DELETE", red.path+"/invitations/inv_0", "", 404, "", "Not found")

	red.refuses("", "POST", accept, `{"token":"`+token+`"}`, 401, "", "Not signed in")
	red.refuses("", "POST", accept, `{"token":"`+token+`","password":"short"}`, 422, "",
		"The password must have at least 10 characters and at most 1024 bytes")
	red.refuses("", "POST", accept, `{"token":"`+token+`","password":"`+password+`","display_name":"`+strings.Repeat("x", 101)+`"}`, 422, "",
		"display_name must have at most 100 characters, and no control characters")
	shown(false)
	answer := w.call("POST", accept, `{"token":"`+token+`","password":"`+password+`","display_name":"Bob B."}`)
	var s signedIn
	w.decode(answer, 200, &s)
	if s.User.Role != "approver" || s.Organization.Slug != "red" || s.Account.Email != "bob@example.com" || s.Account.DisplayName != "Bob B." || w.cookie(answer) == "" {
		t.Errorf("got %+v", s)
	}
	if got := red.must(200, "ann", "GET", red.path+"/invitations", "")["invitations"].([]any); len(got) != 0 {
		t.Errorf("after the acceptance: got %v", got)
	}

	// A known account accepts with its session, from another organization.
	w.prove("bob@example.com")
	other, token := blue.invite("bob@example.com", "auditor")
	blue.people["bob"] = &person{cookie: w.cookie(answer)}
	code, got := blue.as("", "GET", preview, "", "X-Invitation-Token", token)
	if code != 200 || got["account_exists"] != true || other == invitation {
		t.Errorf("preview: got %d %v", code, got)
	}
	entered := blue.must(200, "bob", "POST", accept, `{"token":"`+token+`"}`)
	if entered["organization"].(map[string]any)["slug"] != "blue" || len(entered["organizations"].([]any)) != 2 {
		t.Errorf("got %v", entered)
	}
	blue.refuses("bob", "GET", me, "", 401, "", "Not signed in") // with the older token
}

// A token that was used, revoked, replaced, changed or is expired, and one whose sender may not invite any more, get
// the same answer, also in the preview, and change nothing.
func TestTokensThatAreOfNoUse(t *testing.T) {
	for name, spoil := range map[string]func(t *team, invitation, token string) string{
		"used": func(t *team, _, token string) string {
			t.must(200, "", "POST", accept, `{"token":"`+token+`","password":"`+password+`"}`)
			return token
		},
		"revoked": func(t *team, invitation, token string) string {
			t.must(204, "admin", "DELETE", t.path+"/invitations/"+invitation, "")
			return token
		},
		"sent again": func(t *team, invitation, token string) string {
			sent := t.must(200, "admin", "POST", t.path+"/invitations/"+invitation+"/resend", "")
			if _, again, _ := strings.Cut(sent["url"].(string), "#token="); again == token || len(again) != len(token) {
				t.t.Errorf("got %v", sent)
			}
			return token
		},
		"expired": func(t *team, _, token string) string {
			t.Pass(7 * 24 * time.Hour)
			return token
		},
		"changed": func(_ *team, _, token string) string {
			return token[:85] + map[bool]string{true: "A", false: "Q"}[token[85] != 'A']
		},
		"of another invitation": func(_ *team, _, token string) string { return token[:30] + "AAAA" + token[34:] },
		"of another organization": func(_ *team, _, token string) string {
			return strings.Repeat("A", 4) + token[4:]
		},
		"short": func(_ *team, _, token string) string { return token[:84] },
		"of a sender who was removed": func(t *team, _, token string) string {
			t.must(204, "ann", "DELETE", t.member("admin"), "")
			return token
		},
		"of a sender who was suspended": func(t *team, _, token string) string {
			t.must(200, "ann", "PATCH", t.member("admin"), `{"suspended":true}`)
			return token
		},
		"of a sender with another role": func(t *team, _, token string) string {
			t.must(200, "ann", "PATCH", t.member("admin"), `{"role":"approver"}`)
			return token
		},
	} {
		t.Run(name, func(t *testing.T) {
			red := newWorld(t).team("red", "admin")
			sent := red.must(201, "admin", "POST", red.path+"/invitations", `{"email":"bob@example.com","role":"member"}`)
			_, token, _ := strings.Cut(sent["url"].(string), "#token=")
			spoiled := spoil(red, sent["invitation_id"].(string), token)
			before := red.kinds()
			red.refuses("", "POST", accept, `{"token":"`+spoiled+`","password":"`+password+`"}`, 404, "", noInvitation)
			red.refuses("ann", "POST", accept, `{"token":"`+spoiled+`"}`, 404, "", noInvitation)
			if code, got := red.as("", "GET", preview, "", "X-Invitation-Token", spoiled); code != 404 || got["error"] != noInvitation {
				t.Errorf("preview: got %d %v", code, got)
			}
			if after := red.kinds(); !slices.Equal(before, after) {
				t.Errorf("got %q, want %q", after, before)
			}
		})
	}
}

// An invitation is for its address: another account, a wrong password and the session of another person are refused,
// and the invitation remains valid.
func TestInvitationOfAnotherAddress(t *testing.T) {
	w := newWorld(t)
	red, blue := w.team("red"), w.team("blue")
	blue.join("bob", "member")
	blue.join("eve", "member")
	w.prove(address("bob"))
	_, token := red.invite(address("bob"), "admin")
	body := `{"token":"` + token + `"}`
	blue.refuses("eve", "POST", accept, body, 403, "", "The invitation is for another address")
	blue.must(200, "eve", "GET", me, "") // her session still works
	blue.refuses("", "POST", accept, `{"token":"`+token+`","password":"`+password+`x"}`, 401, "", "Invalid e-mail address or password")
	blue.refuses("eve", "POST", accept, `{"token":"`+token+`","password":"`+password+`x"}`, 401, "", "Invalid e-mail address or password")
	if g := w.call("POST", accept, body, "Cookie", blue.people["bob"].cookie, "Origin", "https://evil.example"); g.Code != 403 {
		t.Errorf("another site: got %d %s", g.Code, g.Body)
	}
	blue.must(200, "bob", "POST", accept, body)
	if got := red.must(200, "ann", "GET", red.path+"/members", "")["members"].([]any); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

// An admin of another organization can neither see, send again nor revoke an invitation.
func TestInvitationsOfAnotherOrganization(t *testing.T) {
	w := newWorld(t)
	red, blue := w.team("red"), w.team("blue", "admin")
	invitation, token := red.invite("bob@example.com", "member")
	for _, path := range []string{red.path, blue.path} {
		blue.refuses("admin", "DELETE", path+"/invitations/"+invitation, "", 404, "", "Not found")
		blue.refuses("admin", "POST", path+"/invitations/"+invitation+"/resend", "", 404, "", "Not found")
		blue.refuses("admin", "PATCH", path+"/members/"+red.people["ann"].membership, `{"role":"member"}`, 404, "", "Not found")
		blue.refuses("admin", "DELETE", path+"/members/"+red.people["ann"].membership, "", 404, "", "Not found")
	}
	blue.refuses("admin", "POST", red.path+"/invitations", `{"email":"x@example.com","role":"member"}`, 404, "", "Not found")
	if got := blue.kinds(); len(got) != 2 {
		t.Errorf("blue has %q", got)
	}
	red.must(200, "", "POST", accept, `{"token":"`+token+`","password":"`+password+`"}`)
}

// Of two concurrent acceptances, one makes a member.
func TestInvitationAcceptedTwiceAtOnce(t *testing.T) {
	red := newWorld(t).team("red")
	_, token := red.invite("bob@example.com", "member")
	codes := make([]int, 8)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() {
			codes[i] = red.call("POST", accept, `{"token":"`+token+`","password":"`+password+`"}`).Code
		})
	}
	all.Wait()
	slices.Sort(codes)
	if codes[0] != 200 || codes[1] == 200 {
		t.Errorf("got %v", codes)
	}
	if got := red.must(200, "ann", "GET", red.path+"/members", "")["members"].([]any); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

// When a membership ends, its rights end: if the same address is invited again, an older session still does not work.
func TestPersonWhoComesBack(t *testing.T) {
	red := newWorld(t).team("red")
	before := red.join("bob", "approver").cookie
	red.must(204, "bob", "DELETE", red.member("bob"), "")
	red.refuses("", "POST", login, `{"email":"bob@example.com","password":"`+password+`"}`, 403, "", "Not a member of the organization")
	red.join("bob", "member") // with the password, because the account is in no organization
	answers(t, "older session", red.call("GET", me, "", "Cookie", before), 401, refusal("Not signed in"))
	if role := red.must(200, "bob", "GET", me, "")["user"].(map[string]any)["role"]; role != "member" {
		t.Errorf("got %v", role)
	}
}

// A person who became a member in another way cannot accept, and guesses of passwords are counted.
func TestAcceptanceOfAMemberAndGuesses(t *testing.T) {
	w := newWorld(t)
	red, blue := w.team("red"), w.team("blue")
	bob := blue.join("bob", "member")
	w.prove(bob.email)
	_, token := red.invite(bob.email, "admin")
	for range 10 {
		blue.refuses("", "POST", accept, `{"token":"`+token+`","password":"wrong password"}`, 401, "", "Invalid e-mail address or password")
	}
	blue.refuses("", "POST", accept, `{"token":"`+token+`","password":"`+password+`"}`, 429, "rate_limited", "Too many sign-in attempts, try again later")
	record, _, err := w.accounts.NewOffer(t.Context(), red.tenant(), account.ID(bob.account), account.Member)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Store.Write(t.Context(), red.tenant(), []storage.Change{record}); err != nil {
		t.Fatal(err)
	}
	blue.refuses("bob", "POST", accept, `{"token":"`+token+`"}`, 409, "member", "The address is one of a member")
}
