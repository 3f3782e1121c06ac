package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/storage"
)

const addressUnproved = "The address of the account is not proved: confirm it by mail, sign in at an OpenID provider, or ask the operator"

const ceo, squatted = "ceo@victim.example", "the squatter knows this"

// squat is a service on which the owner of green accepted an invitation for another person's address, with a
// password, a passkey and recovery codes. The squatter is signed in.
func squat(t *testing.T, w *world) (red *team, squatter *browser, key *passkeytest.Authenticator, codes []string) {
	t.Helper()
	red = w.team("green")
	_, token := red.invite(ceo, "approver")
	squatter = w.browser(60)
	w.decode(squatter.ask("POST", accept, `{"token":"`+token+`","password":"`+squatted+`","display_name":"Eve"}`), 200, &signedIn{})
	key = squatter.register("laptop")
	return red, squatter, key, squatter.makeCodes()
}

// gone checks that no factor of the squatter signs in any more.
func (w *world) gone(t *testing.T, step string, squatter *browser, key *passkeytest.Authenticator) {
	t.Helper()
	answers(t, step+": session", squatter.ask("GET", me, ""), 401, refusal("Not signed in"))
	answers(t, step+": password", w.browser(61).ask("POST", login, `{"email":"`+ceo+`","password":"`+squatted+`"}`), 401, refusal("Invalid e-mail address or password"))
	answers(t, step+": passkey", w.browser(62).use(key), 401, passkeyRefused)
}

func (w *world) summary(t *testing.T, email string) (a struct {
	EmailProof string `json:"email_proof"`
	Passkeys   int    `json:"passkeys"`
	CodesLeft  int    `json:"recovery_codes_left"`
	AccountID  string `json:"account_id"`
}) {
	t.Helper()
	answer := w.platform("GET", "/v1/id/platform/accounts?email="+email, "")
	var list struct{ Accounts []json.RawMessage }
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list.Accounts) != 1 {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	if err := json.Unmarshal(list.Accounts[0], &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// An account whose address is unproved exists only in the organization that invited it.
func TestUnprovedAccount(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.Signup = true })
	red, squatter, _, _ := squat(t, w)
	blue := w.team("blue")
	var who signedIn
	w.decode(squatter.ask("GET", me, ""), 200, &who)
	if who.Account.EmailProved || w.summary(t, ceo).EmailProof != "none" {
		t.Errorf("got %+v", who.Account)
	}
	var ann signedIn
	w.decode(w.browser(63).ask("POST", login, `{"email":"`+email+`","password":"`+password+`"}`), 200, &ann)
	if !ann.Account.EmailProved {
		t.Errorf("the operator named ann: got %+v", ann.Account)
	}
	for _, m := range red.must(200, "ann", "GET", red.path+"/members", "")["members"].([]any) {
		if m := m.(map[string]any); m["email_proved"] != (m["email"] == email) {
			t.Errorf("got %v", m)
		}
	}
	unproved := `{"error":"` + addressUnproved + `","code":"address_unproved"}`
	_, token := blue.invite(ceo, "owner")
	answers(t, "another organization, by the session", squatter.ask("POST", accept, `{"token":"`+token+`"}`), 403, unproved)
	answers(t, "an organization of its own", squatter.ask("POST", orgs, `{"name":"Own","slug":"own"}`), 403, unproved)
	if list := blue.must(200, "ann", "GET", blue.path+"/members", "")["members"].([]any); len(list) != 1 {
		t.Errorf("blue has %v", list)
	}
	w.decode(squatter.ask("GET", red.path+"/members", ""), 200, &map[string]any{})

	// It can leave its organization and come back.
	answers(t, "leaves", squatter.ask("DELETE", red.path+"/members/"+who.User.MembershipID, ""), 204, "")
	_, token = red.invite("other@example.com", "member")
	eve := w.browser(64)
	w.decode(eve.ask("POST", accept, `{"token":"`+token+`","password":"`+password+`"}`), 200, &who)
	answers(t, "leaves", eve.ask("DELETE", red.path+"/members/"+who.User.MembershipID, ""), 204, "")
	_, token = red.invite("other@example.com", "member")
	w.decode(w.browser(65).ask("POST", accept, `{"token":"`+token+`","password":"`+password+`"}`), 200, &who)
	_, token = blue.invite("other@example.com", "member")
	answers(t, "blue, by the password", w.browser(66).ask("POST", accept, `{"token":"`+token+`","password":"`+password+`"}`), 403, unproved)
}

// If the operator creates an organization for an address, the organization's owner takes the account over.
func TestFoundingTakesOver(t *testing.T) {
	for name, given := range map[string]string{"without a password": "", "with a password": "the operator's choice"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			red, squatter, key, _ := squat(t, w)
			body := `{"name":"Victim","slug":"victim","admin_email":"` + ceo + `"`
			if given != "" {
				body += `,"admin_password":"` + given + `"`
			}
			var m made
			w.decode(w.platform("POST", organizations, body+"}"), 201, &m)
			if m.Account != "created" {
				t.Errorf("got %q: the answer reveals an account that nobody proved", m.Account)
			}
			w.gone(t, "founded", squatter, key)
			if a := w.summary(t, ceo); a.EmailProof != "operator" || a.Passkeys != 0 || a.CodesLeft != 0 {
				t.Errorf("got %+v", a)
			}
			if given == "" {
				given = "set by the operator"
				answers(t, "password", w.platform("POST", "/v1/id/platform/accounts/password", `{"email":"`+ceo+`","password":"`+given+`"}`), 204, "")
			}
			b := w.browser(67)
			var who signedIn
			w.decode(b.ask("POST", login, `{"email":"`+ceo+`","password":"`+given+`","organization_id":"`+m.OrganizationID+`"}`), 200, &who)
			if who.User.Role != "owner" || who.Account.DisplayName != "" || len(who.Organizations) != 2 || !who.Account.EmailProved {
				t.Errorf("got %+v", who)
			}
			if got := b.kindsOfLogin(); !slices.Contains(got, "address_taken_over") {
				t.Errorf("got %v", got)
			}
			red.must(200, "ann", "GET", me, "")
			if got := strings.Count(strings.Join(b.kindsOfLogin(), " "), "address_taken_over"); got != 1 {
				t.Errorf("taken over %d times", got)
			}
		})
	}
}

// A password set by the operator is the first proof of an address. It leaves the other factors of a proved account.
func TestOperatorsPasswordTakesOver(t *testing.T) {
	w := newWorld(t)
	_, squatter, key, codes := squat(t, w)
	set := func(password string) {
		t.Helper()
		answers(t, "set", w.platform("POST", "/v1/id/platform/accounts/password", `{"email":"`+ceo+`","password":"`+password+`"}`), 204, "")
	}
	set("set by the operator")
	w.gone(t, "set", squatter, key)
	b := w.browser(68)
	w.decode(b.ask("POST", login, `{"email":"`+ceo+`","password":"set by the operator"}`), 200, &signedIn{})
	if status, _ := b.code(codes[0]); status == 200 {
		t.Error("a recovery code of before counts")
	}
	b.register("own")
	set("set once more here")
	if a := w.summary(t, ceo); a.Passkeys != 1 {
		t.Errorf("a proved account lost its passkey: %+v", a)
	}
}

// The link for a forgotten password is a proof by mail.
func TestResetTakesOver(t *testing.T) {
	w := newWorld(t)
	_, squatter, key, _ := squat(t, w)
	w.deliver()
	answers(t, "reset", w.reset(w.resetToken(ceo), "chosen by the person"), 204, "")
	w.gone(t, "reset", squatter, key)
	b := w.browser(69)
	w.decode(b.ask("POST", login, `{"email":"`+ceo+`","password":"chosen by the person"}`), 200, &signedIn{})
	if got := b.kindsOfLogin(); !slices.Contains(got, "address_taken_over") || !slices.Contains(got, "password_reset") {
		t.Errorf("got %v", got)
	}
	if a := w.summary(t, ceo); a.EmailProof != "mail" || a.Passkeys != 0 || a.CodesLeft != 0 {
		t.Errorf("got %+v", a)
	}
	codes := b.makeCodes()
	w.deliver()
	w.Pass(10 * time.Minute) // one mail to an address in that time
	answers(t, "a second reset", w.reset(w.resetToken(ceo), "chosen once more here"), 204, "")
	if a := w.summary(t, ceo); a.CodesLeft != len(codes) {
		t.Errorf("a proved account lost its codes: %+v", a)
	}
}

const newPasswordNeeded = `{"error":"The address of the account has not been proved: choose a new password","code":"new_password"}`

// An invitation that was only mailed proves the address: the person takes over the account that somebody else had made,
// with a new password or passkey, with or without a session of the account.
func TestMailedInvitationTakesOver(t *testing.T) {
	ways := map[string]func(b *browser, token string) *httptest.ResponseRecorder{
		"password": func(b *browser, token string) *httptest.ResponseRecorder {
			return b.ask("POST", accept, `{"token":"`+token+`","password":"chosen by the person","display_name":"Ceo"}`)
		},
		"passkey": func(b *browser, token string) *httptest.ResponseRecorder {
			made := passkeytest.New(b.t, origin).Create(b.options(passkeyCreate, `{"email":"`+ceo+`"}`))
			return b.ask("POST", accept, `{"token":"`+token+`","display_name":"Ceo","passkey":{"name":"phone","credential":`+made+`}}`)
		},
	}
	for way, take := range ways {
		for _, inSession := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a session %v", way, inSession), func(t *testing.T) {
				w := newWorld(t)
				_, before, key, _ := squat(t, w)
				blue := w.team("blue")
				w.withInvitationMail()
				w.deliver()
				token := blue.inviteByMail(ceo, "auditor")
				if _, shown := blue.as("", "GET", preview, "", "X-Invitation-Token", token); shown["account_exists"] != false {
					t.Errorf("the preview reveals an account that nobody proved: %v", shown)
				}
				b := w.browser(71)
				if inSession {
					b, before = before, w.browser(70)
					w.decode(before.use(key), 200, &signedIn{})
					answers(t, "by the session alone", b.ask("POST", accept, tokenBody(token)), 422, newPasswordNeeded)
					if a := w.summary(t, ceo); a.EmailProof != "none" || a.Passkeys != 1 {
						t.Errorf("refused: got %+v", a)
					}
				}
				var who signedIn
				w.decode(take(b, token), 200, &who)
				w.gone(t, way, before, key)
				if got := b.kindsOfLogin(); !slices.Contains(got, "address_taken_over") {
					t.Errorf("got %v", got)
				}
				if who.Account.DisplayName != "Ceo" || who.Organization.Slug != "blue" || !who.Account.EmailProved {
					t.Errorf("got %+v", who)
				}
				if a := w.summary(t, ceo); a.EmailProof != "mail" || a.CodesLeft != 0 {
					t.Errorf("got %+v", a)
				}
			})
		}
	}
}

// inviteByMail invites an address and returns the token from the mail.
func (o *team) inviteByMail(email, role string) (token string) {
	o.t.Helper()
	sent := o.must(201, "ann", "POST", o.path+"/invitations", `{"email":"`+email+`","role":"`+role+`"}`)
	if sent["mailed"] != true || sent["url"] != nil {
		o.t.Fatalf("got %v", sent)
	}
	_, token, _ = strings.Cut(o.deliver()[0].Text, "#token=")
	token, _, _ = strings.Cut(token, "\n")
	return token
}

// withInvitationMail sends the invitations of all organizations by mail.
func (w *world) withInvitationMail() {
	o := w.members.Options
	o.Mail = notify.OrganizationMail{Outbox: w.mail, Organizations: w.orgs, Accounts: w.accounts, PublicURL: publicURL}
	w.members = member.New(o)
	w.serveWith(func(o *identity.Options) { o.Members = w.members })
}

// A new account that accepts a mailed invitation is proved. One that accepts a link from the inviter is not.
func TestInvitationProves(t *testing.T) {
	w := newWorld(t)
	red := w.team("red")
	red.join("bob", "member")
	w.withInvitationMail()
	token := red.inviteByMail("carl@example.com", "member")
	w.decode(w.browser(72).ask("POST", accept, `{"token":"`+token+`","password":"`+password+`"}`), 200, &signedIn{})
	if bob, carl := w.summary(t, address("bob")).EmailProof, w.summary(t, "carl@example.com").EmailProof; bob != "none" || carl != "mail" {
		t.Errorf("got %s and %s", bob, carl)
	}
}

// A person of a provider takes over the account that somebody else made for the address.
func TestProviderTakesOver(t *testing.T) {
	w := newOpenIDWorld(t)
	red, squatter, key, _ := squat(t, w.world)
	w.provider.Claims = func(c map[string]any) { c["email"] = ceo }
	b := w.browser(73)
	cookie, query := w.begin("")
	b.keep(w.session(w.finish(cookie, query)))
	var who signedIn
	w.decode(b.ask("GET", me, ""), 200, &who)
	if who.Account.Email != ceo || !who.Account.EmailProved || who.Account.DisplayName != "" {
		t.Errorf("got %+v", who.Account)
	}
	w.gone(t, "provider", squatter, key)
	if got := b.kindsOfLogin(); !slices.Contains(got, "address_taken_over") || !slices.Contains(got, "provider_linked") {
		t.Errorf("got %v", got)
	}
	if a := w.summary(t, ceo); a.EmailProof != "provider" || a.Passkeys != 0 {
		t.Errorf("got %+v", a)
	}
	red.must(200, "ann", "GET", me, "")
}

// A proved account is linked with a provider, once, after one of its own factors was proved.
func TestLinkAsksForAFactor(t *testing.T) {
	w := newOpenIDWorld(t)
	w.provider.Claims = func(c map[string]any) { c["email"] = email }
	begin := func(b *browser) {
		t.Helper()
		b.follow(w, linkRequired)
	}
	b := w.browser(80)
	begin(b)
	answers(t, "no session yet", b.ask("GET", me, ""), 401, refusal("Not signed in"))

	// A sign-in to another account or in another browser links nothing.
	w.decode(w.platform("POST", organizations, `{"name":"Blue","slug":"blue","admin_email":"bob@example.com","admin_password":"`+password+`"}`), 201, &made{})
	w.decode(b.ask("POST", login, `{"email":"bob@example.com","password":"`+password+`"}`), 200, &signedIn{})
	w.decode(w.browser(81).ask("POST", login, `{"email":"`+email+`","password":"`+password+`"}`), 200, &signedIn{})
	begin(w.browser(82))

	// Neither does a wrong password, nor a password alone if the account has a second factor.
	ann := w.signedInBrowser(83, email)
	codes := ann.makeCodes()
	c := w.browser(84)
	begin(c)
	c.begin(email, `"recovery_code"`)
	begin(w.browser(85))
	if status, body := c.code(codes[0]); status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	if got := c.kindsOfLogin(); !slices.Contains(got, "provider_linked") || slices.Contains(got, "address_taken_over") {
		t.Errorf("got %v", got)
	}
	fresh := w.browser(86)
	fresh.follow(w, "")
	var who signedIn
	w.decode(fresh.ask("GET", me, ""), 200, &who)
	if who.Account.Email != email {
		t.Errorf("got %+v", who)
	}
}

// A session of the account in the same browser proves the factor if the person has recently proved one.
func TestLinkBySession(t *testing.T) {
	w := newOpenIDWorld(t)
	w.provider.Claims = func(c map[string]any) { c["email"] = email }
	old, recent := w.signedInBrowser(90, email), w.signedInBrowser(91, email)
	w.Pass(15 * time.Minute)
	w.decode(recent.ask("POST", stepUp, `{"password":"`+password+`"}`), 200, &signedIn{})
	old.follow(w, linkRequired)
	recent.follow(w, "")
	if got := recent.kindsOfLogin(); !slices.Contains(got, "provider_linked") {
		t.Errorf("got %v", got)
	}
}

// follow signs in at the provider. refusal is the expected error, or "" for a session.
func (b *browser) follow(w *openIDWorld, refusal string) {
	b.t.Helper()
	started := b.ask("GET", oidcPath+"/company/start", "")
	query := w.provider.Authorize(started.Header().Get("Location"))
	answer := b.ask("GET", oidcPath+"/company/callback?"+query.Encode(), "")
	if refusal == "" && answer.Code == 303 {
		return
	}
	answers(b.t, "sign-in at the provider", answer, 401, refusal)
}

// An account that changes to an address takes it from an unproved account, which then cannot sign in.
func TestChangeTakesAddress(t *testing.T) {
	w := newWorld(t)
	_, squatter, key, _ := squat(t, w)
	ann := w.signedInBrowser(92, email)
	w.deliver()
	answers(t, "ask", ann.ask("POST", "/v1/id/account/email", `{"email":"`+ceo+`"}`), 204, "")
	_, token, _ := strings.Cut(w.deliver()[0].Text, "#token=")
	token, _, _ = strings.Cut(token, "\n")
	var who signedIn
	w.decode(ann.ask("POST", "/v1/id/account/email/confirm", `{"token":"`+token+`"}`), 200, &who)
	if who.Account.Email != ceo {
		t.Errorf("got %+v", who.Account)
	}
	w.gone(t, "changed", squatter, key)
	if a := w.summary(t, ceo); a.AccountID != who.Account.AccountID || a.EmailProof != "mail" {
		t.Errorf("got %+v", a)
	}
	w.decode(w.browser(93).ask("POST", login, `{"email":"`+ceo+`","password":"`+password+`"}`), 200, &signedIn{})
}

// The first address that an account confirms by mail is its first proof, so the account is taken over with a new
// password.
func TestConfirmedAddressTakesOver(t *testing.T) {
	for name, address := range map[string]string{"its own": ceo, "another one": "ceo@new.example"} {
		t.Run(name, func(t *testing.T) {
			const chosen = "chosen by the person"
			confirm := func(token, password string) string { return `{"token":"` + token + `","password":"` + password + `"}` }
			w := newWorld(t)
			_, before, key, _ := squat(t, w)
			b := w.browser(94)
			w.decode(b.use(key), 200, &signedIn{})
			w.deliver()
			answers(t, "ask", b.ask("POST", emailPath, `{"email":"`+address+`"}`), 204, "")
			sent := w.deliver()
			if len(sent) != 1 || sent[0].To != address {
				t.Fatalf("got %+v", sent)
			}
			token := confirmLink.FindStringSubmatch(sent[0].Text)[1]
			answers(t, "no password", b.ask("POST", confirmPath, tokenBody(token)), 422, newPasswordNeeded)
			answers(t, "a short password", b.ask("POST", confirmPath, confirm(token, "short")), 422,
				refusal("The password must have at least 10 characters and at most 1024 bytes"))
			if a := w.summary(t, ceo); a.EmailProof != "none" || a.Passkeys != 1 {
				t.Errorf("refused: got %+v", a)
			}
			answers(t, "in no session", w.call("POST", confirmPath, confirm(token, chosen)), 401, refusal("Not signed in"))
			var who signedIn
			w.decode(b.ask("POST", confirmPath, confirm(token, chosen)), 200, &who)
			if !who.Account.EmailProved || who.Account.Email != address || who.Account.DisplayName != "" || who.Organization.Slug != "green" {
				t.Errorf("got %+v", who)
			}
			w.gone(t, "confirmed", before, key)
			answers(t, "old password", w.signIn(address, squatted), 401, refusal("Invalid e-mail address or password"))
			if a := w.summary(t, address); a.EmailProof != "mail" || a.Passkeys != 0 || a.CodesLeft != 0 {
				t.Errorf("got %+v", a)
			}
			if got := b.kindsOfLogin(); !slices.Contains(got, "address_taken_over") {
				t.Errorf("got %v", got)
			}
			answers(t, "token twice", b.ask("POST", confirmPath, confirm(token, chosen)), 422, changeOver)
			w.decode(w.signIn(address, chosen), 200, &signedIn{})
		})
	}
}

// An offer that an older program made to an unproved account is neither shown nor accepted.
func TestOldOfferToUnprovedAccount(t *testing.T) {
	w := newWorld(t)
	_, squatter, _, _ := squat(t, w)
	blue := w.team("blue")
	who, err := w.accounts.Find(t.Context(), ceo)
	if err != nil {
		t.Fatal(err)
	}
	record, _, err := w.accounts.NewOffer(t.Context(), blue.tenant(), who.ID, account.Owner)
	if err == nil {
		err = w.Store.Write(t.Context(), blue.tenant(), []storage.Change{record})
	}
	if err != nil {
		t.Fatal(err)
	}
	var shown signedIn
	w.decode(squatter.ask("GET", me, ""), 200, &shown)
	if len(shown.Organizations) != 1 {
		t.Errorf("got %+v", shown.Organizations)
	}
	answers(t, "switch", squatter.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+blue.OrganizationID+`"}`), 403, refusal("Not a member of the organization"))
	w.prove(ceo)
	w.decode(squatter.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+blue.OrganizationID+`"}`), 200, &shown)
}

// Accounts stored by an older program have no proof. It is derived from their data.
func TestProofOfOlderAccounts(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.Signup = true })
	red := w.team("red")
	w.Pass(time.Second)
	for _, name := range []string{"bob", "carl", "dora", "eve"} {
		red.join(name, "member")
	}
	ann := w.signedInBrowser(95, email)
	w.deliver()
	answers(t, "dora resets", w.reset(w.resetToken(address("dora")), "chosen by the person"), 204, "")
	eve := w.signedInBrowser(96, address("eve"))
	answers(t, "ask", eve.ask("POST", "/v1/id/account/email", `{"email":"eve2@example.com"}`), 204, "")
	for _, m := range w.deliver() {
		if _, token, ok := strings.Cut(m.Text, "confirm-email#token="); ok {
			token, _, _ = strings.Cut(token, "\n")
			w.decode(eve.ask("POST", confirmPath, `{"token":"`+token+`","password":"chosen by the person"}`), 200, &signedIn{})
		}
	}
	w.prove(address("carl"))
	w.Pass(time.Second)
	own := w.signedInBrowser(97, address("carl"))
	w.decode(own.ask("POST", orgs, `{"name":"Own","slug":"own"}`), 201, &setUpAnswer{})
	for who, want := range map[string]string{email: "operator", address("bob"): "none", address("carl"): "none", address("dora"): "mail", "eve2@example.com": "mail"} {
		w.forgetProof(who)
		if got := w.summary(t, who).EmailProof; got != want {
			t.Errorf("%s: got %s, want %s", who, got, want)
		}
		if got := w.summary(t, who).EmailProof; got != want {
			t.Errorf("%s again: got %s, want %s", who, got, want)
		}
	}
	w.decode(ann.ask("GET", me, ""), 200, &signedIn{}) // this ends nothing
	w.decode(own.ask("GET", me, ""), 200, &signedIn{})
}

// forgetProof stores the account of an address as older programs did.
func (w *world) forgetProof(email string) {
	w.t.Helper()
	w.changeStored(email, func(members map[string]any) {
		delete(members, "proof")
		delete(members, "linked")
	})
}
