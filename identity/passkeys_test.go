package identity_test

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
)

// A person registers a passkey and signs in with it. The other person's account is unchanged.
func TestPasskey(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	other, before := w.signedInBrowser(3, email), ann.jar["__Host-agentledger"]
	key := ann.register("laptop")
	answers(t, "another session", other.ask("GET", me, ""), 401, refusal("Not signed in"))
	answers(t, "the token before", w.as("__Host-agentledger="+before, "GET", me, ""), 401, refusal("Not signed in"))
	w.decode(ann.ask("GET", me, ""), 200, &signedIn{})
	w.decode(bob.ask("GET", me, ""), 200, &signedIn{})

	w.Pass(time.Hour)
	fresh := w.browser(4)
	var got signedIn
	w.decode(fresh.use(key), 200, &got)
	if got.Account.Email != email || got.Organization.Slug != "red" || got.User.Role != "owner" {
		t.Errorf("got %+v", got)
	}
	list := fresh.passkeys()
	if len(list.Passkeys) != 1 || list.CodesLeft != 0 || list.Passkeys[0].UsedAt == nil || *list.Passkeys[0].UsedAt == list.Passkeys[0].CreatedAt {
		t.Errorf("got %+v", list)
	}
	if list := bob.passkeys(); len(list.Passkeys) != 0 {
		t.Errorf("bob's: got %+v", list)
	}
	if got := fresh.kindsOfLogin(); got[0] != "signed_in" || !slices.Contains(got, "passkey_added") {
		t.Errorf("got %v", got)
	}
	if got := bob.kindsOfLogin(); len(got) != 2 {
		t.Errorf("bob's: got %v", got)
	}
	blue := got.Organization.OrganizationID
	w.decode(fresh.ask("POST", passkeyFinish, `{"organization_id":"`+blue+`","credential":`+key.Use(fresh.options(passkeyBegin, ""))+`}`), 200, &got)
	var bobs signedIn
	w.decode(bob.ask("GET", me, ""), 200, &bobs)
	answers(t, "bob's organization", fresh.ask("POST", passkeyFinish, `{"organization_id":"`+bobs.Organization.OrganizationID+`","credential":`+
		key.Use(fresh.options(passkeyBegin, ""))+`}`), 403, refusal("Not a member of the organization"))
}

// If any part of an answer is wrong, it is refused with the same text, and the passkey remains valid.
func TestPasskeyRefused(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	key, bobs := ann.register("laptop"), bob.register("phone")
	good := *key
	for name, change := range map[string]func(*passkeytest.Authenticator){
		"another origin":          func(a *passkeytest.Authenticator) { a.Origin = "https://evil.example" },
		"another port":            func(a *passkeytest.Authenticator) { a.Origin = origin + ":8443" },
		"http":                    func(a *passkeytest.Authenticator) { a.Origin = "http://log.example" },
		"a subdomain":             func(a *passkeytest.Authenticator) { a.Origin = "https://a.log.example" },
		"another rpId":            func(a *passkeytest.Authenticator) { a.RPID = "evil.example" },
		"the domain above":        func(a *passkeytest.Authenticator) { a.RPID = "example" },
		"no user verification":    func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Present },
		"nobody there":            func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Verified },
		"a creation":              func(a *passkeytest.Authenticator) { a.Type = "webauthn.create" },
		"a broken signature":      func(a *passkeytest.Authenticator) { a.Break = func(s []byte) { s[len(s)-1] ^= 1 } },
		"no user handle":          func(a *passkeytest.Authenticator) { a.Handle = nil },
		"bob's handle":            func(a *passkeytest.Authenticator) { a.Handle = bobs.Handle },
		"bob's credential":        func(a *passkeytest.Authenticator) { a.Credential = bobs.Credential },
		"bob's, with his handle":  func(a *passkeytest.Authenticator) { a.Credential, a.Handle = bobs.Credential, bobs.Handle },
		"a credential of nobody":  func(a *passkeytest.Authenticator) { a.Credential = []byte("a credential of nobody") },
		"an empty credential id":  func(a *passkeytest.Authenticator) { a.Credential = nil },
		"backed up, not eligible": func(a *passkeytest.Authenticator) { a.Flags |= passkeytest.BackedUp },
	} {
		broken := good
		change(&broken)
		b := w.browser(100 + len(name))
		answers(t, name, b.use(&broken), 401, passkeyRefused)
		answers(t, name+": session", b.ask("GET", me, ""), 401, refusal("Not signed in"))
	}
	for name, credential := range map[string]string{"null": "null", "empty": "{}", "text": `"x"`, "list": "[]", "number": "1"} {
		b := w.browser(150 + len(name))
		b.options(passkeyBegin, "")
		answers(t, name, b.ask("POST", passkeyFinish, `{"credential":`+credential+`}`), 401, passkeyRefused)
	}
	w.decode(w.browser(160).use(key), 200, &signedIn{})
}

// A provider may start to sync a passkey: the backup-eligible flag turns on, and the passkey still signs in. The flag
// is stored, so an answer without it is refused from then on.
func TestPasskeyBackupFlags(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	key, bobs := ann.register("laptop"), bob.register("phone")
	key.Flags |= passkeytest.BackupEligible
	key.Break = func(s []byte) { s[len(s)-1] ^= 1 }
	answers(t, "the flag without a signature", w.browser(5).use(key), 401, passkeyRefused)
	key.Break = nil
	w.decode(w.browser(5).use(key), 200, &signedIn{})
	key.Flags |= passkeytest.BackedUp
	w.decode(w.browser(5).use(key), 200, &signedIn{})
	synced := w.browser(5)
	w.decode(synced.use(key), 200, &signedIn{})
	if list := synced.passkeys().Passkeys; !list[0].BackedUp {
		t.Errorf("got %+v", list)
	}
	key.Flags &^= passkeytest.BackedUp
	w.decode(synced.use(key), 200, &signedIn{})
	if list := synced.passkeys().Passkeys; list[0].BackedUp {
		t.Errorf("no longer backed up: got %+v", list)
	}
	w.log.Reset()
	key.Flags &^= passkeytest.BackupEligible
	answers(t, "the flag turned off", w.browser(6).use(key), 401, passkeyRefused)
	if got := w.log.String(); !strings.Contains(got, `"passkey refused"`) || !strings.Contains(got, "Backup Eligible flag") {
		t.Errorf("the log does not contain the reason: %s", got)
	}
	w.decode(w.browser(7).use(bobs), 200, &signedIn{})
}

// The log contains the reason for each refusal; the answer does not.
func TestPasskeyRefusalsAreLogged(t *testing.T) {
	w, ann, _ := twoBrowsers(t)
	key := ann.register("laptop")
	good := *key
	for reason, change := range map[string]func(*passkeytest.Authenticator){
		"origin":              func(a *passkeytest.Authenticator) { a.Origin = "https://evil.example" },
		"RP Hash":             func(a *passkeytest.Authenticator) { a.RPID = "evil.example" },
		"User verification":   func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Present },
		"assertion signature": func(a *passkeytest.Authenticator) { a.Break = func(s []byte) { s[len(s)-1] ^= 1 } },
		"unknown credential":  func(a *passkeytest.Authenticator) { a.Credential = []byte("unknown") },
	} {
		broken := good
		change(&broken)
		w.log.Reset()
		answers(t, reason, w.browser(100+len(reason)).use(&broken), 401, passkeyRefused)
		if got := w.log.String(); !strings.Contains(got, "passkey refused") || !strings.Contains(strings.ToLower(got), strings.ToLower(reason)) {
			t.Errorf("%s: got %s", reason, got)
		}
	}
	evil := passkeytest.New(t, "https://evil.example")
	w.log.Reset()
	answers(t, "new", ann.finish("k", evil.Create(ann.options(passkeysPath+"/begin", ""))), 422, newPasskeyRefused)
	if got := w.log.String(); !strings.Contains(got, "new passkey refused") || !strings.Contains(got, "origin") {
		t.Errorf("a new passkey: got %s", got)
	}
}

// A counter that does not increase indicates a copy. The person sees it.
func TestPasskeyCopied(t *testing.T) {
	w, ann, _ := twoBrowsers(t)
	key := ann.register("laptop")
	w.Pass(time.Minute)
	stolen := *key
	for range 3 {
		w.decode(w.browser(5).use(key), 200, &signedIn{})
	}
	w.Pass(time.Minute)
	thief := w.browser(6)
	answers(t, "the copy", thief.use(&stolen), 401, passkeyRefused)
	stolen.Counter = key.Counter - 1
	answers(t, "the same count", thief.use(&stolen), 401, passkeyRefused)
	w.Pass(time.Minute)
	owner := w.browser(7)
	w.decode(owner.use(key), 200, &signedIn{})
	if got := owner.kindsOfLogin(); got[1] != "passkey_copied" || got[2] != "passkey_copied" || got[3] != "signed_in" {
		t.Errorf("got %v", got)
	}
}

// A challenge belongs to one browser and one purpose, for five minutes and one answer.
func TestPasskeyChallenge(t *testing.T) {
	w, ann, _ := twoBrowsers(t)
	key := ann.register("laptop")
	b := w.browser(8)
	answer := `{"credential":` + key.Use(b.options(passkeyBegin, "")) + `}`
	answers(t, "another browser", w.browser(9).ask("POST", passkeyFinish, answer), 401, passkeyRefused)
	other := w.browser(10)
	other.options(passkeyBegin, "")
	answers(t, "another challenge", other.ask("POST", passkeyFinish, answer), 401, passkeyRefused)
	w.decode(b.ask("POST", passkeyFinish, answer), 200, &signedIn{})
	answers(t, "replayed", b.ask("POST", passkeyFinish, answer), 401, passkeyRefused)

	again := *key
	again.Counter += 5
	answers(t, "another answer to the same challenge", b.ask("POST", passkeyFinish, `{"credential":`+again.Use(b.lastOptions)+`}`), 401, passkeyRefused)

	for name, cookie := range map[string]string{"none": "", "no base64": "%", "long": strings.Repeat("a", 5000), "not sealed": "aaaa"} {
		b := w.browser(11)
		answer := `{"credential":` + key.Use(b.options(passkeyBegin, "")) + `}`
		b.jar["__Host-agentledger_passkey"] = cookie
		answers(t, name, b.ask("POST", passkeyFinish, answer), 401, passkeyRefused)
	}
	late := w.browser(12)
	answer = `{"credential":` + key.Use(late.options(passkeyBegin, "")) + `}`
	w.Pass(5 * time.Minute)
	answers(t, "late", late.ask("POST", passkeyFinish, answer), 401, passkeyRefused)
	w.decode(late.ask("POST", login, `{"email":"bob@example.com","password":"`+password+`"}`), 200, &signedIn{})
	creation := *key
	creation.Counter += 9
	answers(t, "the challenge of a creation", late.ask("POST", passkeyFinish, `{"credential":`+creation.Use(late.options(passkeysPath+"/begin", ""))+`}`),
		401, passkeyRefused)
}

// If any part of a new passkey is wrong, it is refused.
func TestNewPasskeyRefused(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	for name, change := range map[string]func(*passkeytest.Authenticator){
		"another origin":       func(a *passkeytest.Authenticator) { a.Origin = "https://evil.example" },
		"another rpId":         func(a *passkeytest.Authenticator) { a.RPID = "evil.example" },
		"no user verification": func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Present },
		"nobody there":         func(a *passkeytest.Authenticator) { a.Flags = passkeytest.Verified },
		"a sign-in":            func(a *passkeytest.Authenticator) { a.Type = "webauthn.get" },
		"a long credential id": func(a *passkeytest.Authenticator) { a.Credential = bytes.Repeat([]byte("a"), 1024) },
	} {
		key := passkeytest.New(t, origin)
		change(key)
		answers(t, name, ann.finish("k", key.Create(ann.options(passkeysPath+"/begin", ""))), 422, newPasskeyRefused)
	}
	const badName = "The passkey's name must have 1 to 100 characters, and no control characters"
	for _, name := range []string{"", strings.Repeat("a", 101), `a\n`} {
		key := passkeytest.New(t, origin)
		answers(t, name, ann.finish(name, key.Create(ann.options(passkeysPath+"/begin", ""))), 422, refusal(badName))
	}
	key := passkeytest.New(t, origin)
	made := key.Create(ann.options(passkeysPath+"/begin", ""))
	bob.jar["__Host-agentledger_passkey"] = ann.jar["__Host-agentledger_passkey"]
	answers(t, "bob with ann's challenge", bob.finish("k", made), 422, newPasskeyRefused)
	w.decode(ann.finish("k", made), 201, &onePasskey{})
	answers(t, "replayed", ann.finish("k", made), 422, newPasskeyRefused)
	copied := *key
	answers(t, "a known credential", bob.finish("k", copied.Create(bob.options(passkeysPath+"/begin", ""))), 409,
		`{"error":"The passkey is known already","code":"passkey_known"}`)
	late := passkeytest.New(t, origin).Create(ann.options(passkeysPath+"/begin", ""))
	w.Pass(5 * time.Minute)
	answers(t, "late", ann.finish("k", late), 422, newPasskeyRefused)
	foreign := passkeytest.New(t, origin).Create(ann.options(passkeyCreate, `{"email":"eve@example.com"}`))
	answers(t, "of an account that is to be made", ann.finish("k", foreign), 422, newPasskeyRefused)
	if n := len(ann.passkeys().Passkeys); n != 1 {
		t.Errorf("ann has %d", n)
	}
	if n := len(bob.passkeys().Passkeys); n != 0 {
		t.Errorf("bob has %d", n)
	}
}

// An account has at most 20 passkeys. The browser gets a list of them.
func TestPasskeysAreBounded(t *testing.T) {
	_, ann, bob := twoBrowsers(t)
	late := passkeytest.New(t, origin)
	begun := ann.options(passkeysPath+"/begin", "")
	challenge := ann.jar["__Host-agentledger_passkey"]
	if strings.Contains(string(begun), "excludeCredentials") {
		t.Errorf("got %s", begun)
	}
	for range 20 {
		ann.register("k")
	}
	const most = `{"error":"The account has 20 passkeys, as many as it can","code":"passkey_limit"}`
	answers(t, "begin", ann.ask("POST", passkeysPath+"/begin", ""), 409, most)
	ann.jar["__Host-agentledger_passkey"] = challenge
	answers(t, "finish", ann.finish("k", late.Create(begun)), 409, most)
	bob.register("k")
	answers(t, "removed", ann.ask("DELETE", passkeysPath+"/"+ann.passkeys().Passkeys[3].ID, ""), 204, "")
	begun = ann.options(passkeysPath+"/begin", "")
	if n := strings.Count(string(begun), `"public-key","id"`) + strings.Count(string(begun), `","type":"public-key"`); n == 0 {
		t.Errorf("got options %s, want them to list the passkeys", begun)
	}
	ann.register("k")
}

// Removing a passkey ends all other sessions. The last way to sign in cannot be removed.
func TestRemovePasskey(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	first := ann.register("laptop")
	second := ann.register("phone")
	other := w.browser(20)
	w.decode(other.use(second), 200, &signedIn{})
	list := ann.passkeys().Passkeys
	answers(t, "bob", bob.ask("DELETE", passkeysPath+"/"+list[0].ID, ""), 404, refusal("Not found"))
	w.Pass(15 * time.Minute)
	for _, c := range [][3]string{{"DELETE", passkeysPath + "/" + list[0].ID}, {"POST", passkeysPath + "/begin"},
		{"POST", passkeysPath + "/finish", "{}"}, {"POST", recoveryCodes}} {
		answers(t, c[0]+" "+c[1]+" without a factor", ann.ask(c[0], c[1], c[2]), 401, stepUpDue)
	}
	w.decode(ann.ask("POST", stepUp, `{"passkey":`+second.Use(ann.options(passkeyBegin, ""))+`}`), 200, &signedIn{})
	answers(t, "remove", ann.ask("DELETE", passkeysPath+"/"+list[0].ID, ""), 204, "")
	answers(t, "another session", other.ask("GET", me, ""), 401, refusal("Not signed in"))
	answers(t, "again", ann.ask("DELETE", passkeysPath+"/"+list[0].ID, ""), 404, refusal("Not found"))
	answers(t, "the removed one", w.browser(21).use(first), 401, passkeyRefused)
	w.decode(w.browser(22).use(second), 200, &signedIn{})
	answers(t, "the second", ann.ask("DELETE", passkeysPath+"/"+list[1].ID, ""), 204, "")
	w.decode(w.browser(23).ask("POST", login, `{"email":"`+email+`","password":"`+password+`"}`), 200, &signedIn{})
	w.decode(bob.ask("POST", stepUp, `{"password":"`+password+`"}`), 200, &signedIn{})
	bob.finish("again", first.Create(bob.options(passkeysPath+"/begin", ""))) // its credential id can be used again
	if n := len(bob.passkeys().Passkeys); n != 1 {
		t.Errorf("bob has %d", n)
	}
}

// A step-up accepts only a passkey of the session's account, and gives the session a new token.
func TestStepUpByPasskey(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	key, bobs := ann.register("laptop"), bob.register("phone")
	w.Pass(15 * time.Minute)
	answers(t, "due", ann.ask("POST", passkeysPath+"/begin", ""), 401, stepUpDue)
	answers(t, "bob's passkey", ann.ask("POST", stepUp, `{"passkey":`+bobs.Use(ann.options(passkeyBegin, ""))+`}`), 401, passkeyRefused)
	answers(t, "still due", ann.ask("POST", passkeysPath+"/begin", ""), 401, stepUpDue)
	answers(t, "no session", w.browser(30).ask("POST", stepUp, `{"passkey":{}}`), 401, refusal("Not signed in"))
	stolen := ann.jar["__Host-agentledger"]
	w.decode(ann.ask("POST", stepUp, `{"passkey":`+key.Use(ann.options(passkeyBegin, ""))+`}`), 200, &signedIn{})
	if ann.ask("POST", passkeysPath+"/begin", "").Code != 200 {
		t.Error("the step-up does not count")
	}
	answers(t, "the token before", w.as("__Host-agentledger="+stolen, "GET", me, ""), 401, refusal("Not signed in"))
}

// The first owner and an invited person can start with a passkey and no password.
func TestFirstPasskey(t *testing.T) {
	w := newWorld(t)
	token := w.beginSetup()
	ann := w.browser(40)
	body := func(more string) string {
		return `{"token":"` + token + `","organization":{"name":"Red","slug":"red"},"email":"` + email + `",` + more + `}`
	}
	key := passkeytest.New(t, origin)
	made := `"passkey":{"name":"laptop","credential":` + key.Create(ann.options(passkeyCreate, `{"email":"`+email+`","display_name":"Ann"}`)) + `}`
	answers(t, "both", ann.ask("POST", setupPath, body(`"password":"`+password+`",`+made)), 422, refusal("Send a password or a passkey, and not both"))
	answers(t, "no passkey", ann.ask("POST", setupPath, body(`"passkey":{"name":"laptop","credential":{}}`)), 422, newPasskeyRefused)
	answers(t, "no token", ann.ask("POST", setupPath, strings.Replace(body(made), token, "x", 1)), 401,
		refusal("Invalid setup token: the service prints a new one at its next start"))
	var red setUpAnswer
	w.decode(ann.ask("POST", setupPath, body(made)), 201, &red)
	w.decode(ann.ask("GET", me, ""), 200, &signedIn{})
	w.decode(w.browser(41).use(key), 200, &signedIn{})
	answers(t, "the last way in", ann.ask("DELETE", passkeysPath+"/"+ann.passkeys().Passkeys[0].ID, ""), 409,
		`{"error":"It is the last way into the account: set a password first","code":"last_way_in"}`)

	for _, c := range [][2]string{{`{"email":"x"}`, "The e-mail address is malformed"},
		{`{"email":"x@example.com","display_name":"\u0001"}`, "display_name must have at most 100 characters, and no control characters"}} {
		answers(t, c[0], ann.ask("POST", passkeyCreate, c[0]), 422, refusal(c[1]))
	}

	invite := func(email string) string {
		answer := ann.ask("POST", "/v1/id/orgs/"+red.Organization.OrganizationID+"/invitations", `{"email":"`+email+`","role":"approver"}`)
		_, token, ok := strings.Cut(answer.Body.String(), "#token=")
		if !ok {
			t.Fatalf("got %d %s", answer.Code, answer.Body)
		}
		return token[:strings.IndexByte(token, '"')]
	}
	bob, bobs := w.browser(42), passkeytest.New(t, origin)
	token = invite("bob@example.com")
	acceptance := func(b *browser, made string) string {
		return `{"token":"` + token + `","display_name":"Bob","passkey":{"name":"phone","credential":` + made + `}}`
	}
	answers(t, "two ways", bob.ask("POST", accept, `{"token":"`+token+`","password":"`+password+`","passkey":{"credential":{}}}`), 422,
		refusal("Send a password or a passkey, and not both"))
	var got signedIn
	w.decode(bob.ask("POST", accept, acceptance(bob, bobs.Create(bob.options(passkeyCreate, `{"email":"bob@example.com"}`)))), 200, &got)
	if got.Account.Email != "bob@example.com" || got.Account.DisplayName != "Bob" || got.User.Role != "approver" {
		t.Errorf("got %+v", got)
	}
	w.decode(w.browser(43).use(bobs), 200, &signedIn{})

	// A known account accepts with its passkey, even if it is in no organization.
	answers(t, "bob leaves", bob.ask("DELETE", "/v1/id/orgs/"+red.Organization.OrganizationID+"/members/"+got.User.MembershipID, ""), 204, "")
	answers(t, "and can't sign in", w.browser(44).use(bobs), 403, refusal("Not a member of the organization"))
	token = invite("bob@example.com")
	back := w.browser(45)
	eve := passkeytest.New(t, origin)
	answers(t, "a new passkey for a known account", back.ask("POST", accept,
		acceptance(back, eve.Create(back.options(passkeyCreate, `{"email":"bob@example.com"}`)))), 401, passkeyRefused)
	if got := back.ask("POST", accept, acceptance(back, key.Use(back.options(passkeyBegin, "")))); got.Code != 403 {
		t.Errorf("ann's passkey: got %d %s", got.Code, got.Body)
	}
	w.decode(back.ask("POST", accept, acceptance(back, bobs.Use(back.options(passkeyBegin, "")))), 200, &signedIn{})
}

// A service whose name is an IP address has no passkeys: browsers do not support them for addresses.
func TestNoPasskeysForAnAddress(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.PublicURL = "http://127.0.0.1:8080" })
	w.organization("red")
	ann := w.signedInBrowser(50, email)
	const none = "The service does not support passkeys: its public URL has no host name"
	for _, c := range [][2]string{
		{passkeyBegin, ""}, {passkeyFinish, `{"credential":{}}`}, {passkeyCreate, `{"email":"` + email + `"}`},
		{passkeysPath + "/begin", ""}, {passkeysPath + "/finish", `{"name":"k","credential":{}}`}, {stepUp, `{"passkey":{}}`},
		{setupPath, `{"token":"x","organization":{"name":"n","slug":"sss"},"email":"x@example.com","passkey":{"name":"k","credential":{}}}`},
	} {
		answers(t, c[0], ann.ask("POST", c[0], c[1]), 404, refusal(none))
	}
}

// Wrong passkeys are limited by network.
func TestPasskeysBruteForce(t *testing.T) {
	w, ann, _ := twoBrowsers(t)
	key := ann.register("laptop")
	eve := w.browser(60)
	eve.options(passkeyBegin, "")
	for range 30 {
		answers(t, "guess", eve.ask("POST", passkeyFinish, `{"credential":{}}`), 401, passkeyRefused)
	}
	const many = `{"error":"Too many attempts, try again later","code":"rate_limited"}`
	answers(t, "too many", eve.ask("POST", passkeyFinish, `{"credential":{}}`), 429, many)
	answers(t, "the right one too", eve.use(key), 429, many)
	w.decode(w.browser(61).use(key), 200, &signedIn{})
}

// Bodies with passkeys and codes have the same limits as everywhere, and pages of other sites are refused.
func TestBodiesOfPasskeys(t *testing.T) {
	w, ann, _ := twoBrowsers(t)
	ann.register("k")
	bodies := map[string]string{passkeyFinish: `{"credential":{}}`, passkeyCreate: `{"email":"x@example.com"}`, recoveryCode: `{"code":"x"}`,
		passkeysPath + "/finish": `{"name":"k","credential":{}}`}
	for path, body := range bodies {
		ask := func(body io.Reader, media string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", path, body)
			r.Header.Set("Content-Type", media)
			r.Header.Set("Cookie", "__Host-agentledger="+ann.jar["__Host-agentledger"])
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			return answer
		}
		answers(t, path+" text", ask(strings.NewReader(body), "text/plain"), 415, refusal("Content-Type must be application/json"))
		answers(t, path+" large", ask(strings.NewReader(`{"a":"`+strings.Repeat("x", 64<<10)+`"}`), "application/json"), 413, refusal("The body is too large"))
		answers(t, path+" slow", ask(iotest.ErrReader(os.ErrDeadlineExceeded), "application/json"), 408, refusal("The body took too long to arrive"))
		answers(t, path+" unknown member", ask(strings.NewReader(`{"colour":"red"}`), "application/json"), 422, refusal(`Member \"colour\" is not known`))
	}
	for _, c := range [][2]string{{"POST", passkeyBegin}, {"POST", passkeyFinish}, {"POST", passkeyCreate}, {"POST", recoveryCode},
		{"POST", passkeysPath + "/begin"}, {"POST", passkeysPath + "/finish"}, {"DELETE", passkeysPath + "/pk_00000000000000000000000000"}, {"POST", recoveryCodes}} {
		answers(t, c[1]+" of another site", w.call(c[0], c[1], "", "Cookie", "__Host-agentledger="+ann.jar["__Host-agentledger"], "Sec-Fetch-Site", "cross-site"),
			403, refusal("Request of another origin"))
	}
}
