package identity_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/test/chromium"
)

// page calls the service from a browser, as the console would.
const page = `<!doctype html><title>passkeys</title><script>
async function call(method, path, body) {
	const headers = body === undefined ? {} : {'Content-Type': 'application/json'};
	const answer = await fetch(path, {method, headers, body: body === undefined ? undefined : JSON.stringify(body)});
	const text = await answer.text();
	return {status: answer.status, body: text === '' ? null : JSON.parse(text)};
}
async function create() {
	const begun = await call('POST', '/v1/id/account/passkeys/begin');
	const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(begun.body.publicKey);
	return (await navigator.credentials.create({publicKey})).toJSON();
}
async function use() {
	const begun = await call('POST', '/v1/id/auth/passkey/begin');
	const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(begun.body.publicKey);
	return (await navigator.credentials.get({publicKey})).toJSON();
}
</script>`

// tab is a page of the service in a real browser.
type tab struct {
	*chromium.Browser
	t testing.TB
}

type pageAnswer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// run runs a script that returns the answer to one call.
func (b tab) run(script string, args ...any) (a pageAnswer) {
	b.t.Helper()
	if err := b.Run(script, &a, args...); err != nil {
		b.t.Fatal(err)
	}
	return a
}

// wants runs a script and checks the answer.
func (b tab) wants(name string, status int, body, script string, args ...any) pageAnswer {
	b.t.Helper()
	a := b.run(script, args...)
	if a.Status != status || body != "" && !sameJSON(b.t, string(a.Body), body) {
		b.t.Errorf("%s: got %d %s, want %d %s", name, a.Status, a.Body, status, body)
	}
	return a
}

// sameJSON compares JSON texts regardless of the order of their members.
func sameJSON(t testing.TB, got, want string) bool {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(got), &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(a, b)
}

const (
	register   = `return call('POST', '/v1/id/account/passkeys/finish', {name: args[0], credential: await create()})`
	usePasskey = `return call('POST', '/v1/id/auth/passkey/finish', {credential: await use()})`
	leave      = `return call('POST', '/v1/id/auth/logout')`
	whoAmI     = `return call('GET', '/v1/id/auth/me')`
)

// serve serves pages and calls on a listener.
func serve(t *testing.T, l net.Listener, calls func() http.Handler) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			calls().ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(page))
	}))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
}

// listen returns a listener and its URL with a host name: passkeys belong to names, not to addresses.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return l, "http://localhost:" + port
}

// A person uses passkeys in a real Chromium with virtual authenticators.
func TestPasskeysInChromium(t *testing.T) {
	listener, address := listen(t)
	evil, evilAddress := listen(t)
	w := newWorld(t, func(o *identity.Options) { o.PublicURL = address })
	serve(t, listener, func() http.Handler { return w.handler })
	serve(t, evil, func() http.Handler { return w.handler }) // a site of another origin that forwards everything
	w.organization("red")
	b := tab{chromium.New(t), t}
	b.Open(address + "/")
	first := b.AddAuthenticator()
	b.wants("password", 200, "", `return call('POST', '/v1/id/auth/login', {email: args[0], password: args[1]})`, email, password)
	b.wants("register", 201, "", register, "laptop")
	if err := b.Run(`await create()`, nil); err == nil || !strings.Contains(err.Error(), "InvalidStateError") {
		t.Errorf("the same authenticator again: got %v", err)
	}

	b.wants("leave", 204, "", leave)
	b.wants("no session", 401, refusal("Not signed in"), whoAmI)
	b.wants("second factor", 200, `{"second_factor":["passkey"]}`,
		`return call('POST', '/v1/id/auth/login', {email: args[0], password: args[1]})`, email, password)
	b.wants("no session yet", 401, refusal("Not signed in"), whoAmI)
	b.wants("sign in", 200, "", usePasskey)
	b.wants("session", 200, "", whoAmI)
	b.wants("step up", 200, "", `return call('POST', '/v1/id/auth/step-up', {passkey: await use()})`)
	b.wants("replayed", 401, passkeyRefused, `const credential = await use();
		const first = await call('POST', '/v1/id/auth/passkey/finish', {credential});
		if (first.status !== 200) return first;
		return call('POST', '/v1/id/auth/passkey/finish', {credential})`)

	copied := first.Credentials()
	if len(copied) != 1 {
		t.Fatalf("got %d credentials", len(copied))
	}
	b.wants("once more", 200, "", usePasskey)
	original := first.Credentials()[0]
	first.Remove()
	thief := b.AddAuthenticator()
	thief.Import(copied[0])
	b.wants("a copy with an old count", 401, passkeyRefused, usePasskey)
	thief.Remove()

	second := b.AddAuthenticator()
	b.wants("a second authenticator", 201, "", register, "phone")
	b.wants("sign in by the second", 200, "", usePasskey)
	second.SetVerified(false)
	if err := b.Run(`await use()`, nil); err == nil {
		t.Error("an authenticator that does not know its person answered")
	}
	second.SetVerified(true)
	b.Open(evilAddress + "/")
	b.wants("another origin", 401, passkeyRefused, usePasskey)
	remaining := second.Credentials()[0]
	second.Remove()
	third := b.AddAuthenticator()
	b.wants("a new passkey of another origin", 422, newPasskeyRefused, register, "evil")
	third.Remove()
	b.Open(address + "/")
	second = b.AddAuthenticator()
	second.Import(remaining)

	var list passkeyList
	if err := json.Unmarshal(b.run(`return call('GET', '/v1/id/account/passkeys')`).Body, &list); err != nil || len(list.Passkeys) != 2 {
		t.Fatalf("got %+v, %v", list, err)
	}
	b.wants("delete", 204, "", `return call('DELETE', '/v1/id/account/passkeys/' + args[0])`, list.Passkeys[0].ID)
	b.wants("sign in by the second", 200, "", usePasskey)
	second.Remove()
	b.AddAuthenticator().Import(original)
	b.wants("the deleted one", 401, passkeyRefused, usePasskey)
}
