package identity_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/passkeytest"
)

const (
	passkeyBegin  = "/v1/id/auth/passkey/begin"
	passkeyFinish = "/v1/id/auth/passkey/finish"
	passkeyCreate = "/v1/id/auth/passkey/create"
	recoveryCode  = "/v1/id/auth/recovery-code"
	passkeysPath  = "/v1/id/account/passkeys"
	recoveryCodes = "/v1/id/account/recovery-codes"
	origin        = "https://log.example"

	passkeyRefused    = `{"error":"The passkey was refused","code":"passkey_refused"}`
	newPasskeyRefused = `{"error":"The new passkey was refused","code":"passkey_refused"}`
	stepUpDue         = `{"error":"Confirm your identity again: step up","code":"step_up"}`
)

// browser holds the cookies of one person, who has a network address of their own.
type browser struct {
	*world
	address string
	jar     map[string]string

	lastOptions []byte
}

func (w *world) browser(number int) *browser {
	return &browser{world: w, address: fmt.Sprintf("198.51.%d.%d", number/250, 1+number%250), jar: map[string]string{}}
}

// signedInBrowser returns the browser of a person who signed in with a password.
func (w *world) signedInBrowser(number int, email string) *browser {
	w.t.Helper()
	b := w.browser(number)
	w.decode(b.ask("POST", login, `{"email":"`+email+`","password":"`+password+`"}`), 200, &signedIn{})
	return b
}

func (b *browser) ask(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = b.address + ":1234"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range b.jar {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	answer := httptest.NewRecorder()
	b.handler.ServeHTTP(answer, r)
	for _, c := range answer.Result().Cookies() {
		b.jar[c.Name] = c.Value
	}
	return answer
}

// options returns the options of a challenge.
func (b *browser) options(path, body string) []byte {
	b.t.Helper()
	answer := b.ask("POST", path, body)
	if answer.Code != 200 {
		b.t.Fatalf("%s: got %d %s", path, answer.Code, answer.Body)
	}
	b.lastOptions = answer.Body.Bytes()
	return b.lastOptions
}

// finish answers a challenge for a new passkey of the account.
func (b *browser) finish(name, credential string) *httptest.ResponseRecorder {
	return b.ask("POST", passkeysPath+"/finish", `{"name":"`+name+`","credential":`+credential+`}`)
}

// register gives the account of the session a new passkey.
func (b *browser) register(name string) *passkeytest.Authenticator {
	b.t.Helper()
	key := passkeytest.New(b.t, origin)
	var made onePasskey
	b.decode(b.finish(name, key.Create(b.options(passkeysPath+"/begin", ""))), 201, &made)
	if made.Name != name || made.UsedAt != nil || made.BackedUp {
		b.t.Errorf("got %+v", made)
	}
	return key
}

// use signs in with a passkey.
func (b *browser) use(key *passkeytest.Authenticator) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.ask("POST", passkeyFinish, `{"credential":`+key.Use(b.options(passkeyBegin, ""))+`}`)
}

type onePasskey struct {
	ID         string  `json:"passkey_id"`
	Credential string  `json:"credential_id"`
	Name       string  `json:"name"`
	CreatedAt  string  `json:"created_at"`
	UsedAt     *string `json:"used_at"`
	BackedUp   bool    `json:"backed_up"`
}

type passkeyList struct {
	Passkeys  []onePasskey `json:"passkeys"`
	CodesLeft int          `json:"recovery_codes_left"`
	Next      *string      `json:"next"`
}

func (b *browser) passkeys() (list passkeyList) {
	b.t.Helper()
	b.decode(b.ask("GET", passkeysPath, ""), 200, &list)
	return list
}

// kindsOfLogin returns the kinds of the account's login events, newest first.
func (b *browser) kindsOfLogin() (kinds []string) {
	b.t.Helper()
	var events eventList
	b.decode(b.ask("GET", loginEventsPath, ""), 200, &events)
	for _, e := range events.LoginEvents {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// twoBrowsers returns the browsers of ann, the owner of red, and of bob, the owner of blue.
func twoBrowsers(t *testing.T) (w *world, ann, bob *browser) {
	t.Helper()
	w, _, _ = twoPeople(t)
	return w, w.signedInBrowser(1, email), w.signedInBrowser(2, "bob@example.com")
}
