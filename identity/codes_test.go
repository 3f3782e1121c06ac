package identity_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/storage"
)

const (
	wrongCode  = `{"error":"Wrong recovery code","code":"wrong_code"}`
	noSignIn   = `{"error":"The sign-in has expired: start again","code":"no_sign_in"}`
	lostFactor = "/v1/id/platform/accounts"
)

// makeCodes makes and returns new recovery codes.
func (b *browser) makeCodes() []string {
	b.t.Helper()
	var made struct {
		Codes []string `json:"recovery_codes"`
	}
	b.decode(b.ask("POST", recoveryCodes, ""), 201, &made)
	return made.Codes
}

// begin signs in by password and checks that second factors are required.
func (b *browser) begin(email, want string) {
	b.t.Helper()
	answers(b.t, "password", b.ask("POST", login, `{"email":"`+email+`","password":"`+password+`"}`), 200, `{"second_factor":[`+want+`]}`)
	answers(b.t, "no session yet", b.ask("GET", me, ""), 401, refusal("Not signed in"))
}

func (b *browser) code(code string) (int, string) {
	answer := b.ask("POST", recoveryCode, `{"code":"`+code+`"}`)
	return answer.Code, answer.Body.String()
}

// If an account has recovery codes, its password alone does not sign in. Each code works once.
func TestRecoveryCodes(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	other := w.signedInBrowser(3, email)
	codes, bobs := ann.makeCodes(), bob.makeCodes()
	answers(t, "another session", other.ask("GET", me, ""), 401, refusal("Not signed in"))
	if list := ann.passkeys(); list.CodesLeft != 10 {
		t.Errorf("got %+v", list)
	}
	for _, secret := range codes {
		if strings.Contains(w.log.String(), secret) {
			t.Error("a code is in the log")
		}
	}
	b := w.browser(4)
	answers(t, "before the password", b.ask("POST", recoveryCode, `{"code":"`+codes[0]+`"}`), 401, noSignIn)
	b.begin(email, `"recovery_code"`)
	for _, c := range []string{"", "aaaa-aaaa-aaaa-aaaa", bobs[0], codes[0][:14]} {
		answers(t, c, b.ask("POST", recoveryCode, `{"code":"`+c+`"}`), 401, wrongCode)
	}
	w.decode(b.ask("POST", recoveryCode, `{"code":" `+strings.ToUpper(strings.ReplaceAll(codes[0], "-", " "))+`"}`), 200, &signedIn{})
	w.decode(b.ask("GET", me, ""), 200, &signedIn{})
	if list := b.passkeys(); list.CodesLeft != 9 {
		t.Errorf("got %+v", list)
	}
	again := w.browser(5)
	again.begin(email, `"recovery_code"`)
	answers(t, "used", again.ask("POST", recoveryCode, `{"code":"`+codes[0]+`"}`), 401, wrongCode)
	w.Pass(5 * time.Minute)
	answers(t, "late", again.ask("POST", recoveryCode, `{"code":"`+codes[1]+`"}`), 401, noSignIn)

	again.begin(email, `"recovery_code"`)
	fresh := ann.makeCodes()
	answers(t, "a change came between", again.ask("POST", recoveryCode, `{"code":"`+fresh[0]+`"}`), 401, noSignIn)
	again.begin(email, `"recovery_code"`)
	answers(t, "of before", again.ask("POST", recoveryCode, `{"code":"`+codes[1]+`"}`), 401, wrongCode)
	ann.register("laptop")
	w.browser(6).begin(email, `"passkey","recovery_code"`)
	for i, c := range fresh {
		b := w.browser(100 + i)
		b.begin(email, `"passkey","recovery_code"`)
		if status, text := b.code(c); status != 200 {
			t.Errorf("code %d: got %d %s", i, status, text)
		}
	}
	last := w.browser(120)
	last.begin(email, `"passkey"`)
	answers(t, "no code is left", last.ask("POST", recoveryCode, `{"code":"`+fresh[9]+`"}`), 401, wrongCode)
	events := strings.Join(ann.kindsOfLogin(), " ")
	for _, kind := range []string{"recovery_codes_made", "recovery_code_used", "passkey_added"} {
		if !strings.Contains(events, kind) {
			t.Errorf("no %s in %s", kind, events)
		}
	}
	answers(t, "bob has his", bob.ask("GET", passkeysPath, ""), 200, `{"passkeys":[],"recovery_codes_left":10,"next":null}`)
}

// The cookie of a sign-in that still needs its second factor authenticates no call.
func TestPendingSignInIsNoSession(t *testing.T) {
	w, ann, _ := twoBrowsers(t)
	ann.makeCodes()
	b := w.browser(4)
	b.begin(email, `"recovery_code"`)
	b.jar["__Host-agentledger"] = b.jar["__Host-agentledger_factor"]
	for _, route := range w.routed {
		if route.Permission.Credential != "session" {
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(route.Pattern)
		answers(t, route.Method+" "+path, b.ask(route.Method, path, map[bool]string{true: "{}"}[route.Body.Max > 0]), 401, refusal("Not signed in"))
	}
}

// Wrong codes are limited as passwords are. Another account, another network and a browser in which the person signed
// in before have limits of their own. The correct code is accepted whatever others have tried, and only once.
func TestRecoveryCodesBruteForce(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	codes := ann.makeCodes()
	bob.makeCodes()
	const (
		many  = `{"error":"Too many recovery codes, try again later","code":"rate_limited"}`
		guess = `{"code":"aaaa-aaaa-aaaa-aaaa"}`
	)
	b := w.browser(100)
	for range 10 {
		b.begin(email, `"recovery_code"`)
		answers(t, "guess", b.ask("POST", recoveryCode, guess), 401, wrongCode)
	}
	answers(t, "the eleventh", b.ask("POST", recoveryCode, guess), 429, many)
	elsewhere := w.browser(120)
	elsewhere.begin(email, `"recovery_code"`)
	answers(t, "elsewhere", elsewhere.ask("POST", recoveryCode, guess), 401, wrongCode)
	ann.address = b.address
	ann.ask("POST", login, `{"email":"`+email+`","password":"`+password+`"}`)
	answers(t, "a known browser", ann.ask("POST", recoveryCode, guess), 401, wrongCode)
	other := w.browser(100)
	other.begin("bob@example.com", `"recovery_code"`)
	answers(t, "another account", other.ask("POST", recoveryCode, guess), 401, wrongCode)
	again := w.browser(100)
	again.begin(email, `"recovery_code"`)
	w.decode(b.ask("POST", recoveryCode, `{"code":"`+codes[0]+`"}`), 200, &signedIn{})
	answers(t, "a used code", again.ask("POST", recoveryCode, `{"code":"`+codes[0]+`"}`), 429, many)
	w.Pass(30 * time.Second)
	answers(t, "later", again.ask("POST", recoveryCode, guess), 401, wrongCode)
}

// A requested organization is remembered over the second factor. A request that is refused does not use up a code.
func TestSecondFactorAndOrganization(t *testing.T) {
	w := newWorld(t)
	red := w.organization("red")
	w.Pass(time.Minute)
	blue := w.organization("blue")
	codes := w.signedInBrowser(1, email).makeCodes()
	for i, c := range []struct {
		organization string
		status       int
	}{{blue.OrganizationID, 200}, {red.OrganizationID, 200}, {id.NewOrganization().String(), 403}} {
		b := w.browser(10 + i)
		body := fmt.Sprintf(`{"email":"%s","password":"%s","organization_id":"%s"}`, email, password, c.organization)
		answers(t, "password", b.ask("POST", login, body), 200, `{"second_factor":["recovery_code"]}`)
		status, text := b.code(codes[i])
		if status != c.status || status == 200 && !strings.Contains(text, `"organization":{"organization_id":"`+c.organization) {
			t.Errorf("%s: got %d %s", c.organization, status, text)
		}
	}
	last := w.browser(13)
	last.begin(email, `"recovery_code"`)
	w.decode(last.ask("POST", recoveryCode, `{"code":"`+codes[2]+`"}`), 200, &signedIn{})
	if list := last.passkeys(); list.CodesLeft != 7 {
		t.Errorf("%d codes are left, want 7", list.CodesLeft)
	}
	w.decode(w.platform("POST", organizations, `{"name":"Green","slug":"green","admin_email":"bob@example.com","admin_password":"`+password+`"}`), 201, &made{})
	bob := w.signedInBrowser(20, "bob@example.com")
	var bobs signedIn
	w.decode(bob.ask("GET", me, ""), 200, &bobs)
	invited := bob.ask("POST", "/v1/id/orgs/"+bobs.Organization.OrganizationID+"/invitations", `{"email":"`+email+`","role":"member"}`)
	_, token, _ := strings.Cut(invited.Body.String(), "#token=")
	token = token[:strings.IndexByte(token, '"')]
	answers(t, "accepting by the password alone", w.browser(21).ask("POST", accept, `{"token":"`+token+`","password":"`+password+`"}`), 401,
		`{"error":"The account has a second factor: sign in first, or send a passkey","code":"second_factor"}`)
}

// The operator finds an account and removes its second factors.
func TestOperatorRemovesSecondFactors(t *testing.T) {
	w, ann, bob := twoBrowsers(t)
	key := ann.register("laptop")
	ann.makeCodes()
	bob.register("phone")
	find := func(email string) (list struct {
		Accounts []struct {
			AccountID     string           `json:"account_id"`
			Email         string           `json:"email"`
			DisplayName   string           `json:"display_name"`
			CreatedAt     string           `json:"created_at"`
			EmailProof    string           `json:"email_proof"`
			HasPassword   bool             `json:"has_password"`
			Passkeys      int              `json:"passkeys"`
			CodesLeft     int              `json:"recovery_codes_left"`
			Organizations []map[string]any `json:"organizations"`
		} `json:"accounts"`
		Next *string `json:"next"`
	}) {
		t.Helper()
		w.decode(w.platform("GET", lostFactor+"?email="+email, ""), 200, &list)
		return list
	}
	found := find("Ann@example.com")
	if len(found.Accounts) != 1 {
		t.Fatalf("got %+v", found)
	}
	a := found.Accounts[0]
	if a.Email != email || a.EmailProof != "operator" || !a.HasPassword || a.Passkeys != 1 || a.CodesLeft != 10 || len(a.Organizations) != 1 || a.Organizations[0]["slug"] != "red" || a.Organizations[0]["role"] != "owner" {
		t.Errorf("got %+v", a)
	}
	if found := find("eve@example.com"); len(found.Accounts) != 0 {
		t.Errorf("got %+v", found)
	}
	answers(t, "no address", w.platform("GET", lostFactor, ""), 422, refusal("email is required"))
	answers(t, "malformed", w.platform("GET", lostFactor+"?email=x", ""), 422, refusal("The e-mail address is malformed"))
	remove := lostFactor + "/" + a.AccountID + "/second-factors"
	answers(t, "ann herself", ann.ask("DELETE", remove, ""), 401, refusal("Invalid platform secret"))
	answers(t, "unknown", w.platform("DELETE", lostFactor+"/acc_x/second-factors", ""), 404, refusal("Not found"))
	answers(t, "remove", w.platform("DELETE", remove, ""), 204, "")
	answers(t, "ann's session", ann.ask("GET", me, ""), 401, refusal("Not signed in"))
	answers(t, "ann's passkey", w.browser(10).use(key), 401, passkeyRefused)
	again := w.signedInBrowser(11, email)
	answers(t, "ann's list", again.ask("GET", passkeysPath, ""), 200, `{"passkeys":[],"recovery_codes_left":0,"next":null}`)
	answers(t, "again", w.platform("DELETE", remove, ""), 204, "")
	if n := len(bob.passkeys().Passkeys); n != 1 {
		t.Errorf("bob has %d", n)
	}
	third := w.signedInBrowser(12, email)
	w.decode(third.finish("laptop", key.Create(third.options(passkeysPath+"/begin", ""))), 201, &onePasskey{})
}

// outrunStore is a store in which another call always changes an account or its factors first.
type outrunStore struct{ storage.RecordStore }

func (s outrunStore) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	for _, c := range changes {
		if c.Kind == "account_factors" || c.Kind == "account" {
			return storage.ErrStale
		}
	}
	return s.RecordStore.Write(ctx, t, changes)
}

func TestFactorsAreOutrun(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	ann := w.signedInBrowser(1, email)
	key, codes := ann.register("laptop"), ann.makeCodes()
	slow := outrunStore{w.Store}
	var factors *factor.Factors
	late := account.New(account.Options{Records: slow, Clock: w.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1},
		Factors: func() account.Factors { return factors }})
	var err error
	factors, err = factor.New(factor.Options{Records: slow, Accounts: late, Sealer: w.SystemEvents.Keyring, PublicURL: publicURL, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	w.serveWith(func(o *identity.Options) { o.Factors, o.Operator.Factors = factors, factors })
	const outrun = "The account was changed in the meantime"
	isBusy := func(name string, answer *httptest.ResponseRecorder) {
		if answer.Code != 503 || !strings.HasPrefix(answer.Body.String(), `{"error":"Too many sign-ins at once","code":"overloaded",`) {
			t.Errorf("%s: got %d %s", name, answer.Code, answer.Body)
		}
	}
	listed := ann.passkeys().Passkeys[0].ID
	answers(t, "codes", ann.ask("POST", recoveryCodes, ""), 409, refusal(outrun))
	answers(t, "remove", ann.ask("DELETE", passkeysPath+"/"+listed, ""), 409, refusal(outrun))
	var who signedIn
	w.decode(ann.ask("GET", me, ""), 200, &who)
	answers(t, "operator", w.platform("DELETE", lostFactor+"/"+who.Account.AccountID+"/second-factors", ""), 409, refusal(outrun))
	isBusy("sign in", w.browser(2).use(key))
	b := w.browser(3)
	b.begin(email, `"passkey","recovery_code"`)
	isBusy("code", b.ask("POST", recoveryCode, `{"code":"`+codes[0]+`"}`))
}
