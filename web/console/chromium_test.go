package console_test

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// generateInBrowser presses the open page's button that generates a key, and returns the texts that the page then shows.
func generateInBrowser(t *testing.T, b *servicetest.Browser) (agent, name, seed string) {
	t.Helper()
	b.Must(`
		document.querySelector("#make-key button").click();
		for (let i = 0; i < 2000 && document.getElementById("made-key").hidden; i++) {
			await new Promise((next) => setTimeout(next, 5));
		}`, nil)
	agent, name, seed = b.Text("#made-agent"), b.Text("#made-id"), b.Text("#made-private")
	if agent == "" || name == "" || seed == "" {
		t.Fatalf("got agent %q, key %q, %d characters of a private key: %s", agent, name, len(seed), b.Text("main"))
	}
	return agent, name, seed
}

// wantOnlyPublic looks for a private key in all requests of the browser, in every encoding that a script could use. It
// also looks for the public key, which one request must contain, to show that the search works.
func wantOnlyPublic(t *testing.T, sent []chromium.Request, seed string) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(seed)
	if err != nil || len(raw) != 32 {
		t.Fatalf("the private key is not base64 of 32 bytes: %v", err)
	}
	private, err := edkey.PrivateFromSeed(raw)
	if err != nil {
		t.Fatal(err)
	}
	expanded := sha512.Sum512(raw)
	pkcs8 := append([]byte("\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"), raw...)
	secret := slices.Concat(encodings(raw), encodings(expanded[:32]), encodings(pkcs8))
	public, found := private.Public().String(), false
	for _, r := range sent {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		all := r.URL + "\n" + r.Body + "\n" + string(text)
		for _, part := range r.Parts {
			all += "\n" + string(part.Bytes)
		}
		if plain, err := url.QueryUnescape(all); err == nil {
			all += "\n" + plain
		}
		for _, form := range secret {
			if strings.Contains(all, form) {
				t.Errorf("the private key is in the request to %s", r.URL)
			}
		}
		found = found || strings.Contains(all, public)
	}
	if !found {
		t.Errorf("none of %d requests contains the public key", len(sent))
	}
}

// encodings returns the encodings of bytes as text.
func encodings(raw []byte) []string {
	return []string{
		string(raw), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)),
		strings.Trim(strings.ReplaceAll(fmt.Sprint(raw), " ", ","), "[]"),
		base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(raw))), "="),
	}
}

// A browser generates keys for a new agent and an existing one. The private keys are in no request, cookie or storage,
// and the service accepts events that they sign.
func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	b := s.Browser()
	b.SignIn(s.Red.Owner)
	b.Visit("/console/agents?new=1")
	b.Fill("agent_id", "system-1")
	b.Must(`
		document.querySelector("#make-key button").click();
		for (let i = 0; i < 2000 && document.getElementById("key-outcome").textContent === ""; i++) {
			await new Promise((next) => setTimeout(next, 5));
		}`, nil)
	if got := b.Text("#key-outcome"); !strings.HasPrefix(got, "agent_id must not begin with") {
		t.Errorf("a rejected agent id: got %q", got)
	}
	b.Messages() // the console has the rejection
	b.Fill("agent_id", "browser-1")
	b.Fill("display_name", "Browser")
	b.Sent()
	agent, name, seed := generateInBrowser(t, b)
	if agent != "browser-1" {
		t.Errorf("got agent %q", agent)
	}
	if got := download(t, b, "#made-file", "agent.key"); got != seed+"\n" {
		t.Errorf("the file agent.key has %d characters", len(got))
	}
	wantOnlyPublic(t, b.Sent(), seed)
	send(t, s, agent, name, seed, "by-browser")

	b.Visit("/console/agents/" + s.Red.Agent.AgentID)
	b.Sent()
	agent, name, seed = generateInBrowser(t, b)
	wantOnlyPublic(t, b.Sent(), seed)
	send(t, s, agent, name, seed, "by-browser-too")
	b.Visit("/console/agents/" + agent)
	if got := b.Text("main"); !strings.Contains(got, name) || strings.Contains(got, seed) {
		t.Errorf("the page of the agent lacks the public key or contains the private key: %s", got)
	}
	wantOnlyPublicStored(t, b, seed)
	b.WantQuiet()
}

// download follows a link and returns the file that the browser saves.
func download(t *testing.T, b *servicetest.Browser, selector, name string) string {
	t.Helper()
	folder := t.TempDir()
	b.Emulate("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": folder})
	b.Must(`document.querySelector(args[0]).click();`, nil, selector)
	for range 1000 {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err == nil && len(text) > 0 {
			return string(text)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the browser saved no file")
	return ""
}

// wantOnlyPublicStored looks for a private key in the storage of a browser.
func wantOnlyPublicStored(t *testing.T, b *servicetest.Browser, seed string) {
	t.Helper()
	var kept string
	b.Must(`return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, await indexedDB.databases(), history.state])`, &kept)
	if strings.Contains(kept, strings.TrimRight(seed, "=")) {
		t.Errorf("the browser's storage contains the private key")
	}
}

// send stores an event signed by a key.
func send(t *testing.T, s *servicetest.Service, agent, name, seed, event string) {
	t.Helper()
	as := *s.Red
	as.Agent.AgentID, as.Agent.KeyID, as.Agent.Private = agent, name, seed
	as.Send(event, nil)
	if got := s.Stranger().Get("/v1/public/orgs/red/verify/" + event); got.Status != 200 || !strings.Contains(got.Body, event) {
		t.Errorf("%s: got %d %s", event, got.Status, got.Body)
	}
}
