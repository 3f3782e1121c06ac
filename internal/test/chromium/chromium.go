// Package chromium drives a real Chromium through chromedriver, which speaks WebDriver over HTTP, with
// virtual authenticators (WebAuthn, section 11). ./scripts/chromium installs both programs. Where the system has it, the
// browser is Chromium's headless shell, which has the same engine without windows, tabs and toolbars, and takes less than
// half of the processor time to open a page.
package chromium

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Browser is a browser with an empty profile. It must not be used after its test ends.
type Browser struct {
	t       testing.TB
	session string   // URL
	looks   []string // of text whose contrast WantAccessible has checked
}

var started = regexp.MustCompile(`started successfully on port ([0-9]+)`)

// PlainHost is a name of this machine that browsers treat as another machine's. Over plain http, its pages have no
// access to cryptography.
const PlainHost = "field.test"

// New returns a browser without traces of earlier tests: no cookies, no stored data, no other pages. It may reuse a
// process that Keep kept.
func New(t testing.TB) *Browser {
	t.Helper()
	p := takeIdle()
	if p == nil {
		p = startProcess(t)
	}
	return p.lend(t)
}

// process is a browser with its driver and profile.
type process struct {
	driver  *exec.Cmd
	session string // URL
	profile string // directory
}

func startProcess(t testing.TB) *process {
	t.Helper()
	profile, err := os.MkdirTemp("", "chromium-test-")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{profile: profile}
	ready := false
	defer func() {
		if !ready {
			p.end()
		}
	}()
	var address string
	p.driver, address = startDriver(t, findProgram(t, "chromedriver"))
	name := "chrome-headless-shell"
	program, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		name, program = "chrome", findProgram(t, "chromium", "chromium-browser", "google-chrome")
	}
	var session struct {
		ID string `json:"sessionId"`
	}
	b := &Browser{t: t}
	b.call("POST", address+"/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": name, "timeouts": map[string]any{"script": 240_000}, // milliseconds: other tests share the processors
		"goog:loggingPrefs": map[string]any{"browser": "ALL", "performance": "ALL"},
		"goog:chromeOptions": map[string]any{
			"binary": program,
			// Without a spare renderer the browser starts processes for the pages that tests open, and no others.
			"args": []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
				"--disable-background-networking", "--disable-component-update", "--disable-sync",
				"--disable-features=SpareRendererForSitePerProcess", "--host-resolver-rules=MAP " + PlainHost + " 127.0.0.1",
				"--user-data-dir=" + profile},
		},
	}}}, &session)
	p.session = address + "/session/" + session.ID
	ready = true
	return p
}

// end ends the browser and its driver, and removes the profile.
func (p *process) end() {
	if p.session != "" {
		if r, err := http.NewRequest("DELETE", p.session, nil); err == nil {
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		}
	}
	if p.driver != nil {
		_ = p.driver.Process.Kill()
		_ = p.driver.Wait()
	}
	_ = os.RemoveAll(p.profile)
}

func findProgram(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: run ./scripts/chromium", names[0])
	return ""
}

// startTries bounds how often chromedriver is started. It takes a port that is free at ::1 and ends if another program
// has the same port at 127.0.0.1, which is common while many tests run.
const startTries = 20

// startDriver starts chromedriver on a free port of this machine and returns its URL. The caller ends it.
func startDriver(t testing.TB, program string) (driver *exec.Cmd, address string) {
	t.Helper()
	var output string
	for range startTries {
		var port string
		if driver, port, output = tryDriver(t, program); port != "" {
			return driver, "http://127.0.0.1:" + port
		}
		if !strings.Contains(output, "port not available") {
			break
		}
	}
	t.Fatalf("chromedriver does not start:\n%s", output)
	return nil, ""
}

// tryDriver starts the program once. It returns the port, or "" and the program's output if the program ended.
func tryDriver(t testing.TB, program string) (driver *exec.Cmd, port, output string) {
	t.Helper()
	driver = exec.Command(program, "--port=0")
	var stderr bytes.Buffer
	driver.Stderr = &stderr
	out, err := driver.StdoutPipe()
	if err == nil {
		err = driver.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := started.FindStringSubmatch(lines.Text()); found != nil {
			go io.Copy(io.Discard, out)
			return driver, found[1], ""
		}
		stdout.WriteString(lines.Text() + "\n")
	}
	err = driver.Wait()
	return nil, "", fmt.Sprintf("%s%s%v", &stdout, &stderr, err)
}

// call makes one WebDriver call and reads its value into value.
func (b *Browser) call(method, address string, body, value any) {
	b.t.Helper()
	if err := send(method, address, body, value); err != nil {
		b.t.Fatal(err)
	}
}

// send makes one WebDriver call and reads its value into value.
func send(method, address string, body, value any) error {
	if body == nil {
		body = map[string]any{}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		return fmt.Errorf("%s %s: %d %s, %v", method, address, response.StatusCode, text, err)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(text, &struct{ Value any }{value}); err != nil {
		return fmt.Errorf("%s %s: %s: %w", method, address, text, err)
	}
	return nil
}

// Open goes to a page.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.call("POST", b.session+"/url", map[string]any{"url": url}, nil)
}

// Run runs the body of an asynchronous function in the page and reads the result into value. The
// error is that of the page.
func (b *Browser) Run(script string, value any, args ...any) error {
	b.t.Helper()
	var result struct {
		Value json.RawMessage `json:"value"`
		Error string          `json:"error"`
	}
	if args == nil {
		args = []any{}
	}
	b.call("POST", b.session+"/execute/async", map[string]any{"args": args, "script": `
		const args = [...arguments], done = args.pop();
		(async () => {` + script + `})()
			.then(value => done({value}), error => done({error: String(error)}));`}, &result)
	if result.Error != "" {
		return fmt.Errorf("page: %s", strings.TrimSpace(result.Error))
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(result.Value, value)
}

// Version returns a text that differs for each document and whenever the document changes, or "" while another document is
// being loaded.
func (b *Browser) Version() string {
	var answer struct{ Result struct{ Value string } }
	if err := send("POST", b.session+"/goog/cdp/execute", map[string]any{"cmd": "Runtime.evaluate", "params": map[string]any{
		"returnByValue": true, "expression": `
			if (globalThis.changes === undefined) {
				globalThis.changes = 0;
				new MutationObserver(() => globalThis.changes++)
					.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
			}
			[performance.timeOrigin, document.readyState, changes].join()`}}, &answer); err != nil {
		return ""
	}
	return answer.Result.Value
}

// ShownText returns the texts of the page that are shown or read aloud, one a line. It needs no script in the page.
func (b *Browser) ShownText() string {
	b.t.Helper()
	var tree struct {
		Nodes []struct {
			Role struct{ Value string }
			Name struct{ Value string }
		}
	}
	b.call("POST", b.session+"/goog/cdp/execute",
		map[string]any{"cmd": "Accessibility.getFullAXTree", "params": map[string]any{}}, &tree)
	var all strings.Builder
	for _, n := range tree.Nodes {
		if n.Role.Value == "StaticText" || n.Role.Value == "button" {
			all.WriteString(n.Name.Value + "\n")
		}
	}
	return all.String()
}

// Picture returns the page as a PNG: the whole page, or the part that the window shows.
func (b *Browser) Picture(whole bool) []byte {
	b.t.Helper()
	var shot struct {
		Data []byte `json:"data"`
	}
	b.Emulate("Emulation.setScrollbarsHidden", map[string]any{"hidden": whole}) // the picture is as wide as the window
	params := map[string]any{"format": "png", "captureBeyondViewport": whole}
	b.call("POST", b.session+"/goog/cdp/execute",
		map[string]any{"cmd": "Page.captureScreenshot", "params": params}, &shot)
	return shot.Data
}

// Emulate sends a command of the DevTools protocol, such as Emulation.setEmulatedMedia.
func (b *Browser) Emulate(command string, params map[string]any) {
	b.t.Helper()
	b.call("POST", b.session+"/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, nil)
}

// Messages returns the messages of the console since the last call, with those about the content
// security policy.
func (b *Browser) Messages() (all []string) {
	b.t.Helper()
	for _, entry := range b.readLog("browser") {
		all = append(all, entry.Message)
	}
	return all
}

// Request is a request that a page has made.
type Request struct {
	URL     string
	Headers map[string]string
	Body    string `json:"postData"`
	Parts   []struct {
		Bytes []byte
	} `json:"postDataEntries"`
}

// Requests returns the URLs that pages have asked for since the last call.
func (b *Browser) Requests() (all []string) {
	b.t.Helper()
	for _, r := range b.Sent() {
		all = append(all, r.URL)
	}
	return all
}

// Sent returns the requests that pages have made since the last call, with their bodies.
func (b *Browser) Sent() (all []Request) {
	b.t.Helper()
	for _, entry := range b.readLog("performance") {
		var event struct {
			Message struct {
				Method string
				Params struct{ Request Request }
			}
		}
		if err := json.Unmarshal([]byte(entry.Message), &event); err != nil {
			b.t.Fatalf("performance log: %v", err)
		}
		if event.Message.Method == "Network.requestWillBeSent" {
			all = append(all, event.Message.Params.Request)
		}
	}
	return all
}

type logEntry struct{ Message string }

func (b *Browser) readLog(kind string) (all []logEntry) {
	b.t.Helper()
	b.call("POST", b.session+"/se/log", map[string]any{"type": kind}, &all)
	return all
}

// EnterFrame makes later scripts run in the first frame that a selector finds, until another page is opened.
func (b *Browser) EnterFrame(selector string) {
	b.t.Helper()
	var frame map[string]string
	b.call("POST", b.session+"/element", map[string]any{"using": "css selector", "value": selector}, &frame)
	b.call("POST", b.session+"/frame", map[string]any{"id": frame}, nil)
}

// Authenticator is a virtual authenticator of a browser.
type Authenticator struct {
	browser *Browser
	address string
}

// Credential is a passkey of a virtual authenticator, as chromedriver writes it.
type Credential map[string]any

// AddAuthenticator connects an authenticator that verifies its person and keeps passkeys.
func (b *Browser) AddAuthenticator() *Authenticator {
	b.t.Helper()
	var name string
	b.call("POST", b.session+"/webauthn/authenticator", map[string]any{"protocol": "ctap2", "transport": "internal",
		"hasResidentKey": true, "hasUserVerification": true, "isUserVerified": true}, &name)
	return &Authenticator{b, b.session + "/webauthn/authenticator/" + name}
}

// Remove disconnects an authenticator.
func (a *Authenticator) Remove() { a.browser.t.Helper(); a.browser.call("DELETE", a.address, nil, nil) }

// Credentials returns the passkeys of an authenticator, with their private keys.
func (a *Authenticator) Credentials() (all []Credential) {
	a.browser.t.Helper()
	a.browser.call("GET", a.address+"/credentials", nil, &all)
	return all
}

// Import puts a passkey into an authenticator.
func (a *Authenticator) Import(c Credential) {
	a.browser.t.Helper()
	a.browser.call("POST", a.address+"/credential", c, nil)
}

// SetVerified sets whether the authenticator recognizes its person.
func (a *Authenticator) SetVerified(verified bool) {
	a.browser.t.Helper()
	a.browser.call("POST", a.address+"/uv", map[string]any{"isUserVerified": verified}, nil)
}
